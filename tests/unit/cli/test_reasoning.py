"""Where it can be read what a sender thought: `handoff show`, `why` and `blame --full` say it."""

from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.model.base.ids import Digest
from batonpass.model.bodies.reasoning import ReasoningPlace
from tests.unit.accounts.shop import AFTER, ANA, write_file
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk

PATH = "/home/ana/t\x1b[2J.jsonl"
PLACE = ReasoningPlace(sha256=Digest("ab" * 32), line=41, path=PATH, uuid="m-7")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk on which a lead handed on with a message of a transcript whose path would clear a screen."""
    bare = a_bare_desk(tmp_path, monkeypatch)
    with bare.relay() as relay:
        lead = relay.start("Fix it", by=ANA)
        lead.checkpoint(["thought"])
        with lead.hand_off("editor", "Shout", may=["write:**"], brief=Brief(reasoning=PLACE)) as editor:
            editor.call(write_file, "a.py", AFTER)
    return bare


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("handoff", "show", "editor"), id="handoff show"),
        pytest.param(("why", "editor"), id="why"),
        pytest.param(("blame", "a.py:2", "--full"), id="blame --full"),
    ],
)
def test_people_are_told_where_it_stands(desk: Desk, command: tuple[str, ...]) -> None:
    """The line, the path and the checkpoint; what a terminal would obey is spelled out."""
    shown = " ".join(desk.words(*command).split())

    assert "line 41 of /home/ana/t" in shown
    assert "(m-7) · checkpoint " in shown
    assert "\x1b" not in shown


def test_programs_get_every_part_of_it(desk: Desk) -> None:
    """Whole ids, the plain digest for whoever has the transcript, and whose checkpoint it was."""
    answer = desk.answer("handoff", "show", "editor")
    reasoning = answer["reasoning"]

    assert (41, "ab" * 32, PATH, "m-7", answer["parent"], None) == tuple(
        reasoning[name] for name in ("line", "sha256", "path", "uuid", "checkpoint_run", "words")
    )
    assert (64, "receipt_") == (len(reasoning["digest"]), reasoning["checkpoint"][:8])
    assert (None, None) == (reasoning["content"], reasoning["rationale"])
