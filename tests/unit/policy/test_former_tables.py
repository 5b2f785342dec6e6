"""Tables of earlier versions: whatever is not understood is refused by name."""

from pathlib import Path

import pytest

from batonpass.errors import InvalidValueError
from batonpass.guard.policy.name_patterns import glob
from batonpass.policy.document import parse_document
from batonpass.policy.policy_table import policy_of, read_policy


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[claude-code", "batonpass.toml:1: is not TOML"),
        ("[other]", "batonpass.toml:1: other: there is no such key"),
        ("claude-code = 1", "claude-code: is not a table"),
        ("[claude-code]\nrules = 1", "batonpass.toml:2: claude-code.rules: there is no such key"),
        ('[claude-code]\ndefault = "ask"', 'claude-code.default: is neither "allow" nor "deny"'),
        ("[claude-code]\nagents = []", "claude-code.agents: is not a table"),
        ("[claude-code.agents]\neditor = 1", "claude-code.agents.editor: is not a table"),
        ('[claude-code.main]\nallow = "Read"', "claude-code.main.allow: is not a list of tools"),
        ("[claude-code.main]\nallow = [1]", "claude-code.main.allow[1]: 1 is not a text"),
        ('[claude-code.main]\ndeny = ["Bash(git"]', "claude-code.main.deny[1]: 'Bash(git' is not the name of a tool"),
        ('[claude-code.main]\ndeny = ["WebFetch(example.org)"]', "WebFetch takes a domain"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, problem: str) -> None:
    """A rule that is passed over protects nobody."""
    with pytest.raises(InvalidValueError) as refused:
        policy_of(parse_document(text.encode()))

    assert problem in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """It is there, so somebody meant something by it."""
    (tmp_path / "batonpass.toml").write_bytes(b"\xff")

    with pytest.raises(InvalidValueError, match="is not UTF-8"):
        read_policy(tmp_path / "batonpass.toml")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/*", "src/a/b", False),
        ("**/a.py", "x/y/a.py", True),
        ("**/a.py", "a.py", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a.py", "axpy", False),
    ],
)
def test_patterns_are_those_of_git(pattern: str, path: str, *, expected: bool) -> None:
    """A star stays within a part of a path, two go across."""
    assert expected == (glob(pattern).fullmatch(path) is not None)
