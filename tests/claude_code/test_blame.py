"""Blame on the real program's transcripts, against what the story knows to be true."""

import json
from typing import Any

import pytest

from tests.claude_code.story import DEEPER, FIX, HALF_EVEN, NOTES, Played
from tests.integration.cli.shell import batonpass_in

pytestmark = pytest.mark.slow

LEDGER = "BATONPASS_LEDGER"


def asked(played: Played, *arguments: str, **more: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Ask in the project, with the home in which the story was played."""
    done = batonpass_in(played.project, "blame", *arguments, "--json", environment={"HOME": str(played.home), **more})
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def told(answer: Any, line: int) -> list[tuple[str, str, str, list[str]]]:  # noqa: ANN401 - as above
    """Return who is named for a line: tool, agent, task, and the agents above."""
    makers = [answer["makers"][call] for call in answer["lines"][line - 1]["calls"]]
    return [
        (maker["tool"], maker["agent"], maker["task"]["text"], [hop["agent"] for hop in maker["chain"]])
        for maker in makers
    ]


def test_lines_of_a_sub_agent_lead_up_to_the_prompt(played: Played) -> None:
    """Its last edit replaced what the main conversation had written there; the rest is older."""
    answer = asked(played, "src/invoice.py")
    editor = ("Edit", "editor", HALF_EVEN, ["editor", "claude-code"])

    assert [[], [], [], [editor], [editor]] == [told(answer, line) for line in range(1, 6)]
    assert {FIX} == {maker["said"]["text"] for maker in answer["makers"].values()}
    assert ("transcripts", 2) == (answer["from"], answer["sessions"])


def test_a_file_that_was_written_whole_is_its_writers(played: Played) -> None:
    """Also two hops down; who started whom is known from the program's own files."""
    office, page = asked(played, "office.md"), asked(played, "page.md")

    assert [("Write", "editor", NOTES, ["editor", "claude-code"])] == told(office, 1)
    assert [("Write", "editor", DEEPER, ["editor", "editor", "claude-code"])] == told(page, 1)
    assert {"imported"} == {
        hop["link"]
        for answer in (office, page)
        for maker in answer["makers"].values()
        for hop in maker["chain"]
        if hop["handoff"]
    }


def test_what_a_shell_did_is_not_pinned_on_anybody(played: Played) -> None:
    """The lines that `sed` wrote stand in no transcript: unexplained, or at most a candidate."""
    lines = asked(played, "notes.md")["lines"]
    archive = asked(played, "archive.txt")

    assert ("unexplained", True) == (lines[0]["known"], lines[0]["unexplained_since"] is not None)
    assert "candidates" == lines[1]["known"]
    assert ["unexplained"] == [line["known"] for line in archive["lines"]]


def test_an_edit_without_a_place_is_a_candidate(played: Played) -> None:
    """The sub-agent wrote these words, and nobody noted where: it may have been that line."""
    assert [("Edit", "editor", NOTES, ["editor", "claude-code"])] == told(asked(played, "notes.md"), 2)


def test_the_ledger_says_the_same_as_the_transcripts(copied: Played) -> None:
    """Imported or read for one answer: the same lines, calls and tasks, told as hearsay."""
    ledger = {"HOME": str(copied.home), LEDGER: str(copied.home / "ledger.db")}
    assert 0 == batonpass_in(copied.project, "import", "claude-code", environment=ledger).returncode
    names = ("src/invoice.py", "notes.md", "office.md", "page.md")
    imported = [asked(copied, name, **{LEDGER: ledger[LEDGER]}) for name in names]
    read = [asked(copied, name) for name in names]

    assert [told(one, line["line"]) for one in read for line in one["lines"]] == [
        told(one, line["line"]) for one in imported for line in one["lines"]
    ]
    assert {(True, True)} == {
        (maker["hearsay"], maker["proof"]["holds"]) for one in imported for maker in one["makers"].values()
    }
