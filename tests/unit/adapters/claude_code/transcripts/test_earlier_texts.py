"""What a run had read: enough to place what it changed, or nothing."""

import pytest

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.claude_code.transcripts.earlier_texts import read_numbered
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.session_files.session_values import FilePatch, PatchHunk
from tests.unit.adapters.claude_code.histories import History

CURRENT = "The file has been updated successfully. (file state is current in your context — no need to Read it back)"
CHANGED = "The file has been updated successfully. (note: the file had been modified on disk since you last read it …)"
READ = "1\tone\n2\ttwo\n3\t"


def changes(history: History) -> list[FilePatch]:
    found = read_conversation(ClaudeCodeSessions(), history.transcript(), history.project)
    return [change for run in found.runs for call in run.calls for change in call.changes]


def reads(history: History, shown: str, **more: object) -> None:
    history.uses("r", "Read", {"file_path": str(history.project / "a"), **more}, history.agent("a1"))
    history.returns("r", shown, history.agent("a1"))


def edits(history: History, old: str, new: str, *, ok: bool = True, said: str = CURRENT) -> None:
    given = {"file_path": str(history.project / "a"), "old_string": old, "new_string": new}
    history.uses("e", "Edit", given, history.agent("a1"))
    history.returns("e", said, history.agent("a1"), ok=ok)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        pytest.param(READ, "one\ntwo\n", id="numbers and tabs"),
        pytest.param("     1→one\n     2→two", "one\ntwo", id="numbers and arrows, formerly"),
        pytest.param(f"{READ}\n\n<system-reminder>be good</system-reminder>", "one\ntwo\n", id="a reminder after it"),
        pytest.param("2\ttwo", None, id="not from the beginning"),
        pytest.param("1\tone\n3\tthree", None, id="a gap"),
        pytest.param(f"{READ}\nand more", None, id="something else after it"),
        pytest.param("nothing", None, id="no numbers"),
        pytest.param("\n".join(f"{number}\tx" for number in range(1, 2001)), None, id="perhaps only a part"),
        pytest.param("1\t" + "x" * 2000, None, id="perhaps only a part of a line"),
    ],
)
def test_a_text_is_read_back_from_what_was_shown(shown: str, text: str | None) -> None:
    """If all of it was shown."""
    assert text == read_numbered(shown)


def test_an_edit_is_placed_in_what_was_read(history: History) -> None:
    """A sub-agent's transcript keeps no patch; what it read before keeps enough."""
    history.says("Fix it")
    reads(history, READ)
    edits(history, "two", "TWO")
    edits(history, "TWO", "2")

    assert [("one\ntwo\n", "one\nTWO\n"), ("one\nTWO\n", "one\n2\n")] == [
        (change.before, change.after) for change in changes(history)
    ]
    assert [
        (PatchHunk(old_start=2, new_start=2, lines=("-two", "+TWO")),),
        (PatchHunk(old_start=2, new_start=2, lines=("-TWO", "+2")),),
    ] == [change.hunks for change in changes(history)]


def test_a_failed_edit_changes_nothing(history: History) -> None:
    """The text stays as it was read."""
    history.says("Fix it")
    reads(history, READ)
    edits(history, "two", "TWO", ok=False)
    edits(history, "two", "2")

    assert ["one\n2\n"] == [change.after for change in changes(history)]


def test_a_file_that_somebody_else_changed_is_not_known(history: History) -> None:
    """The program edits it all the same; what stands around the edit now, nobody has seen."""
    history.says("Fix it")
    reads(history, READ)
    edits(history, "two", "TWO", said=CHANGED)
    edits(history, "one", "ONE")

    assert [(None, None), (None, None)] == [(change.before, change.after) for change in changes(history)]


def test_a_part_is_no_text(history: History) -> None:
    """Where in the file it lies is not known then."""
    history.says("Fix it")
    reads(history, READ, limit=2)
    edits(history, "two", "TWO")

    assert [(None, None)] == [(change.after, change.hunks[0].old_start) for change in changes(history)]


def test_a_new_file_is_known_by_what_the_program_says(history: History) -> None:
    """All of its lines were added."""
    history.says("Fix it")
    given = {"file_path": str(history.project / "b"), "content": "x\n"}
    history.uses("w", "Write", given, history.agent("a1"))
    history.returns("w", f"File created successfully at: {history.project}/b", history.agent("a1"))

    assert [(True, (PatchHunk(old_start=0, new_start=1, lines=("+x",)),))] == [
        (change.created, change.hunks) for change in changes(history)
    ]
