"""Grants in `batonpass.toml`: read as they are written, and what is wrong is said with its line."""

from pathlib import Path

import pytest

from batonpass.errors import PolicyFileError
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import write_grants
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.scope_text import read_scope
from batonpass.policy.document import parse_document
from batonpass.policy.policy_table import policy_of, read_policy

EDITOR = AgentId("editor")


def test_what_is_suggested_can_be_pasted(tmp_path: Path) -> None:
    """The text that a suggestion prints is read back as the grant that was meant, beside all other tables."""
    grant = Grant(may=read_scope(["write:src/**; at most 3 calls", 'pay:x where to is "a b"']), limits=Limits(calls=9))
    file = tmp_path / "batonpass.toml"
    file.write_text(f"[policy]\nenforce = true\n\n{write_grants({EDITOR: grant})}", encoding="utf-8")

    policy = read_policy(file)

    assert (True, {EDITOR: grant}, "batonpass.toml:4") == (
        policy.enforce,
        dict(policy.grants),
        policy.where("grant.editor"),
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param('[grant.a]\nmay = [\n  "read:**",\n  "write",\n]', 4, "write", id="the very permit that is wrong"),
        pytest.param('[grant.a]\nmay = []\nmai = ["read:**"]', 3, "there is no such key", id="a key that nobody knows"),
        pytest.param('[grant.a]\nmay = "read:**"', 2, "may", id="a permit where a list is wanted"),
        pytest.param("[grant.a]\nmay = [1]", 2, "1 is not a text", id="a number among permits"),
        pytest.param('[grant.a]\nlimits = "3 calls"', 2, "limits", id="limits that are none"),
        pytest.param("[grant.a]\n\nuntil = 2026-12-01", 3, "until", id="a day without a time"),
        pytest.param('[policy]\n[grant."a b"]\nmay = []', 2, "grant", id="no name of an agent"),
        pytest.param("grant = 3", 1, "is not a table", id="no tables at all"),
        pytest.param("[grant]\neditor = 3", 2, "is not a table", id="no table for an agent"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, words: str) -> None:
    """A person finds it without looking for it, and nothing that is wrong is passed over."""
    with pytest.raises(PolicyFileError) as caught:
        policy_of(parse_document(text.encode()))

    assert (line, True) == (caught.value.line, words in str(caught.value))
