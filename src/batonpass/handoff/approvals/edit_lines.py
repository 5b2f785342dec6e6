"""The changes of a call in a file, as removed and added lines, each with a sign before it.

The signs are `-`, `+`, a space for a line that stays, and `@` for our own words. So no line of a file can look like one
of our own.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from batonpass.attribution.changes.line_diff import blocks_between, gaps_of
from batonpass.handoff.files.replaced_file import Stand, StandingFile, split_lines
from batonpass.handoff.tools.whole_write import WholeWrite
from batonpass.model.base.visible import visible

# The arguments for the removed and the new text, as agents name them.
EDIT_NAMES: Final = (
    *(("old_string", "new_string"), ("old_str", "new_str"), ("oldString", "newString")),
    *(("old_text", "new_text"), ("before", "after")),
)
_AROUND: Final = 3  # lines that are shown before and after a change
_FOUND: Final = {
    Stand.NONE: "a new file",
    Stand.BINARY: "the file that is there is not text; all of it goes",
    Stand.UNREAD: "what is there could not be read: it is too large, or no file that we may read; all of it goes",
    Stand.OUTSIDE: "it is outside of the work tree, so what is there was not read; all of it goes",
    Stand.ELSEWHERE: "it is not on this machine, so what is there is not known; all of it goes",
}


def edit_lines(arguments: object) -> Iterator[str]:
    """Yield every line of every edit in the arguments of a call. Nothing is cut."""
    if not isinstance(arguments, dict):
        return
    for old, new in EDIT_NAMES:
        before, after = arguments.get(old), arguments.get(new)
        if isinstance(before, str) and isinstance(after, str):
            yield from _changed(before.split("\n"), after.split("\n"))
    edits = arguments.get("edits")
    for one in edits if isinstance(edits, list) else ():
        yield from edit_lines(one)


def file_lines(write: WholeWrite, standing: StandingFile | None) -> Iterator[str]:
    """Yield the changes by a call that replaces a file, compared with the file when the call was held.

    Unchanged lines are left out, except some around each change; their number is given in their place.
    """
    after = split_lines(write.text)
    if standing is None:
        yield "@ what was in the file is no longer here; all of it goes"
        yield from (f"+ {line}" for line in after)
        return
    if standing.found is not Stand.TEXT or standing.text is None:
        size = "" if standing.size is None else f", {standing.size:,} bytes"
        yield f"@ {visible(standing.path)}: {_FOUND.get(standing.found, _FOUND[Stand.UNREAD])}{size}"
        yield from (f"+ {line}" for line in after)
        return
    before = split_lines(standing.text)
    lines = [*_changed(before, after)]
    goes, comes = _counted(standing.goes, "goes", "go"), _counted(standing.comes, "comes", "come")
    yield f"@ {visible(standing.path)}: {goes}, {comes}"
    shown = sum(line.startswith("- ") for line in lines), sum(line.startswith("+ ") for line in lines)
    if shown != (standing.goes, standing.comes):
        yield "@ what looks like a secret is not shown, so not every difference is"
    yield from _near_changes(lines)


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    at = 0
    for gap in gaps_of(blocks_between(before, after), len(before), len(after)):
        yield from (f"  {line}" for line in before[at : gap.old])
        yield from (f"- {line}" for line in before[gap.old : gap.old_end])
        yield from (f"+ {line}" for line in after[gap.new : gap.new_end])
        at = gap.old_end
    yield from (f"  {line}" for line in before[at:])


def _near_changes(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that change and those around them, and how many others stay between."""
    near = {
        place
        for index, line in enumerate(lines)
        if not line.startswith("  ")
        for place in range(index - _AROUND, index + _AROUND + 1)
    }
    left = 0
    for index, line in enumerate(lines):
        if index not in near:
            left += 1
            continue
        if left:
            yield _left(left)
        left = 0
        yield line
    if left:
        yield _left(left)


def _left(count: int) -> str:
    return f"@ {_counted(count, 'stays', 'stay')} as {'it is' if count == 1 else 'they are'}"


def _counted(count: int, one: str, many: str) -> str:
    return f"1 line {one}" if count == 1 else f"{count:,} lines {many}"
