"""A pasted diff: its lines are found in the files as they are now, and what is not there is said to be missing."""

import pytest

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.hunk_blame import hunk_row
from batonpass.accounts.blame.pasted_diff import PastedBlock, blame_patch, read_patch
from batonpass.errors import InvalidValueError

NOW = ["zero", "one", "two", "three", "two", "four"]
PATCH = """\
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1,4 +1,5 @@
 zero
-gone
+one
+two
 three
 two
"""


def blame_of(path: str) -> Blame | None:
    """Return a file in which nothing is explained; None for every other file."""
    lines = tuple(
        BlamedLine(number=number, text=text, known=HowKnown.UNEXPLAINED) for number, text in enumerate(NOW, 1)
    )
    return Blame(asked=path, path=path, total=len(NOW), lines=lines) if path == "src/a.py" else None


def places(patch: str) -> list[tuple[str, int, int, str | None]]:
    """Return where the blocks of a diff are now."""
    found = (hunk.place for hunk in blame_patch(patch, blame_of))
    return [(one.path, one.first, one.added, one.instead) for one in found]


def test_added_lines_are_found_where_the_diff_has_them() -> None:
    """One block for lines that follow each other, with how many were taken away."""
    assert [PastedBlock(path="src/a.py", first=2, added=("one", "two"), removed=1)] == [*read_patch(PATCH)]
    assert [("src/a.py", 2, 2, None)] == places(PATCH)


def test_lines_that_have_moved_are_found_nearby() -> None:
    """Numbers of an older diff are only where to look first; the nearest place with all lines counts."""
    assert [("src/a.py", 5, 1, None)] == places("+++ b/src/a.py\n@@ -9,0 +9 @@\n+two\n")
    assert [("src/a.py", 3, 1, None)] == places("+++ b/src/a.py\n@@ -1,0 +1 @@\n+two\n")


def test_lines_that_are_not_there_are_said_to_be_missing() -> None:
    """Nothing is guessed, also not for a file that cannot be read."""
    found = [*blame_patch("+++ b/src/a.py\n@@ -1,0 +1,2 @@\n+one\n+never\n", blame_of)]
    other = [*blame_patch("+++ b/other.py\n@@ -0,0 +1 @@\n+one\n", blame_of)]

    assert "src/a.py  2 lines that the file does not have now" == str(hunk_row(found[0]))
    assert "other.py  1 line, and the file cannot be read here" == str(hunk_row(other[0]))


def test_content_cannot_imitate_a_header() -> None:
    """A hunk is as long as its header says, whatever its lines look like."""
    patch = "+++ b/src/a.py\n@@ -1,0 +1,3 @@\n+++ b/secret\n+@@ -1 +1 @@\n+x\n"

    assert [PastedBlock(path="src/a.py", first=1, added=("++ b/secret", "@@ -1 +1 @@", "x"), removed=0)] == [
        *read_patch(patch)
    ]


def test_a_deleted_file_and_one_without_a_last_line_feed() -> None:
    """The name before the deletion is told; git's remark about the last line is no line."""
    patch = '--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n--- "a/b c"\n+++ "b/b c"\n'

    assert [PastedBlock(path="src/a.py", first=0, added=(), removed=1)] == [*read_patch(patch)]


def test_what_is_no_diff_is_refused() -> None:
    """With what to paste instead."""
    with pytest.raises(InvalidValueError, match="has no hunk"):
        blame_patch("just words\n@@ -1 +1 @@\n", blame_of)
