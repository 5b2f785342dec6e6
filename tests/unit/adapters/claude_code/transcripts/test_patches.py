"""What results say about files, and what follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.claude_code.transcripts.patches import (
    patch_of_input,
    read_patch,
)
from batonpass.adapters.session_files.patches import apply_hunks, hunks_between
from batonpass.adapters.session_files.session_values import PatchHunk

EDITED = {
    "filePath": "/p/a.py",
    "originalFile": "one\ntwo\nthree\n",
    "structuredPatch": [
        {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+TWO", " three"]},
    ],
}


def test_the_text_after_follows_from_the_hunks() -> None:
    """What a human changed in the proposal is in the hunks and not in the arguments."""
    patch = read_patch("Edit", EDITED)

    assert patch is not None
    assert "one\nTWO\nthree\n" == patch.after


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_hunks_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    """Whatever two texts there are."""
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    assert after == apply_hunks(before, hunks_between(before, after))


def test_long_texts_are_compared() -> None:
    """However many lines are not the same."""
    before, after = "a\n" * 6000, "b\n" * 6000

    assert after == apply_hunks(before, hunks_between(before, after))


@pytest.mark.parametrize(
    ("hunk", "places"),
    [
        pytest.param({"oldStart": 1, "newStart": 1, "lines": ["+x"]}, (0, 1), id="into an empty file"),
        pytest.param({"oldStart": 1, "newStart": 1, "lines": ["-x"]}, (1, 0), id="out of it again"),
        pytest.param({"oldStart": 4, "newStart": 4, "lines": [" a", "+x"]}, (4, 4), id="somewhere"),
    ],
)
def test_a_side_without_lines_begins_after_a_line(hunk: dict[str, object], places: tuple[int, int]) -> None:
    """As diff counts; the program tells the line that follows."""
    patch = read_patch("Edit", {"filePath": "/p/a", "structuredPatch": [hunk]})

    assert patch is not None
    assert places == (patch.hunks[0].old_start, patch.hunks[0].new_start)


def test_a_missing_newline_at_the_end_is_a_remark() -> None:
    """It is no line of the file."""
    lines = (" a", "-b", "\\ No newline at end of file", "+B", "\\ No newline at end of file")

    assert "a\nB" == apply_hunks("a\nb", [PatchHunk(old_start=1, new_start=1, lines=lines)])


def test_a_hunk_that_only_adds_names_the_line_before() -> None:
    """As diff counts."""
    assert "a\nx\nb" == apply_hunks("a\nb", [PatchHunk(old_start=1, new_start=2, lines=("+x",))])


@pytest.mark.parametrize(
    "hunk",
    [
        pytest.param(PatchHunk(old_start=1, new_start=1, lines=("-other",)), id="another line"),
        pytest.param(PatchHunk(old_start=9, new_start=9, lines=("-a",)), id="beyond the end"),
        pytest.param(PatchHunk(old_start=None, new_start=None, lines=("-a",)), id="no place"),
        pytest.param(PatchHunk(old_start=2, new_start=2, lines=("-b", "-c")), id="more lines than there are"),
    ],
)
def test_hunks_that_do_not_fit_lead_nowhere(hunk: PatchHunk) -> None:
    """No text is made up."""
    assert None is apply_hunks("a\nb", [hunk])


def test_a_new_file_is_one_hunk() -> None:
    """Every line of it was added."""
    patch = read_patch("Write", {"type": "create", "filePath": "/p/a", "content": "x\ny\n", "structuredPatch": []})

    assert patch is not None
    assert (True, None, (PatchHunk(old_start=0, new_start=1, lines=("+x", "+y")),)) == (
        patch.created,
        patch.before,
        patch.hunks,
    )


def test_an_empty_new_file_has_no_hunk() -> None:
    """There is no line to add."""
    patch = read_patch("Write", {"type": "create", "filePath": "/p/a", "content": "", "structuredPatch": []})

    assert patch is not None
    assert () == patch.hunks


def test_a_last_line_without_end_is_a_line() -> None:
    """It is added like the others."""
    assert ("+x", "+y") == hunks_between("", "x\ny")[0].lines


@pytest.mark.parametrize(
    "result",
    [
        pytest.param("Error: no", id="words"),
        pytest.param(None, id="nothing"),
        pytest.param({"filePath": 7, "structuredPatch": []}, id="a path that is none"),
        pytest.param({"filePath": "", "structuredPatch": []}, id="an empty path"),
        pytest.param({"filePath": "/p/a"}, id="no patch and no text"),
        pytest.param({"filePath": "/p/a", "structuredPatch": ["x"]}, id="a hunk that is none"),
        pytest.param({"filePath": "/p/a", "structuredPatch": [{"lines": [1]}]}, id="lines that are none"),
        pytest.param(
            {"filePath": "/p/a", "structuredPatch": [{"oldStart": -1, "newStart": True, "lines": []}]},
            id="places that are none",
        ),
    ],
)
def test_what_is_not_as_we_know_it_says_nothing(result: object) -> None:
    """A result of another version, or of somebody else, is not interpreted."""
    assert None is read_patch("Edit", result)


def test_only_editors_tell_changes() -> None:
    """Any server's tool could return the same fields."""
    assert None is read_patch("mcp__evil__edit", EDITED)


@pytest.mark.parametrize(
    ("tool", "arguments", "lines"),
    [
        pytest.param(
            "Edit",
            {"file_path": "/p/a", "old_string": "a\nb", "new_string": "c"},
            [("-a", "-b", "+c")],
            id="an edit",
        ),
        pytest.param(
            "MultiEdit",
            {
                "file_path": "/p/a",
                "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}],
            },
            [("-a", "+b"), ("-c",)],
            id="many edits",
        ),
    ],
)
def test_what_was_asked_for_is_what_was_done(tool: str, arguments: dict[str, object], lines: list[object]) -> None:
    """Where a result keeps nothing, a call that succeeded did what it was asked to; where is not known."""
    patch = patch_of_input(tool, arguments, None, created=False)

    assert patch is not None
    assert (lines, None) == ([hunk.lines for hunk in patch.hunks], patch.hunks[0].old_start)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        pytest.param("Bash", {"file_path": "/p/a"}, id="another tool"),
        pytest.param("Edit", {"old_string": "a", "new_string": "b"}, id="no path"),
        pytest.param("Write", {"file_path": "/p/a", "content": 7}, id="no text"),
        pytest.param("MultiEdit", {"file_path": "/p/a", "edits": "x"}, id="no edits"),
        pytest.param("MultiEdit", {"file_path": "/p/a", "edits": [7]}, id="edits that are none"),
    ],
)
def test_arguments_that_say_nothing_are_no_change(tool: str, arguments: dict[str, object]) -> None:
    """Nothing is made up from arguments either."""
    assert None is patch_of_input(tool, arguments, None, created=False)


@pytest.mark.parametrize(
    ("arguments", "before", "after"),
    [
        pytest.param({"old_string": "a", "new_string": "b"}, "a\nc\n", "b\nc\n", id="one place"),
        pytest.param({"old_string": "a", "new_string": "b"}, "a\na\n", None, id="two places, and only one meant"),
        pytest.param(
            {"old_string": "a", "new_string": "b", "replace_all": True}, "a\na\n", "b\nb\n", id="two places, both meant"
        ),
        pytest.param({"old_string": "a", "new_string": "b"}, "c\n", None, id="no place: it was another text"),
        pytest.param({"old_string": "", "new_string": "b\n"}, "", "b\n", id="an empty file"),
        pytest.param({"old_string": "", "new_string": "b\n"}, "a", None, id="nothing, in a text"),
    ],
)
def test_the_text_after_follows_from_the_text_before(
    arguments: dict[str, object], before: str, after: str | None
) -> None:
    """If what was to be replaced stands there as often as it must."""
    patch = patch_of_input("Edit", {"file_path": "/p/a", **arguments}, before, created=False)

    assert patch is not None
    assert (after, None if after is None else before) == (patch.after, patch.before)


def test_writing_a_file_tells_all_of_it() -> None:
    """But not what was there."""
    patch = patch_of_input("Write", {"file_path": "/p/a", "content": "x\n"}, None, created=False)

    assert patch is not None
    assert ("x\n", None, ()) == (patch.after, patch.before, patch.hunks)
