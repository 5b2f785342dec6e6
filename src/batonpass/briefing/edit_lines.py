"""An edit that a call asks for, as lines that go and lines that come: read from its arguments alone."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

# What an editor takes out and puts in, as agents name it.
EDIT_NAMES: Final = (
    *(("old_string", "new_string"), ("old_str", "new_str"), ("oldString", "newString")),
    *(("old_text", "new_text"), ("before", "after")),
)
_MOST_LINES: Final = 4000  # beyond that, matching lines takes minutes: all go, and all come


def edit_lines(arguments: object) -> Iterator[str]:
    """Yield the lines of every edit in the arguments of a call with `-`, `+` or a space before each. Nothing is cut."""
    if not isinstance(arguments, dict):
        return
    for old, new in EDIT_NAMES:
        before, after = arguments.get(old), arguments.get(new)
        if isinstance(before, str) and isinstance(after, str):
            yield from _changed(before.split("\n"), after.split("\n"))
    edits = arguments.get("edits")
    for one in edits if isinstance(edits, list) else ():
        yield from edit_lines(one)


def _changed(before: list[str], after: list[str]) -> Iterator[str]:
    if len(before) + len(after) > _MOST_LINES:
        yield from (f"- {line}" for line in before)
        yield from (f"+ {line}" for line in after)
        return
    for kind, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  {line}" for line in before[first:last])
            continue
        yield from (f"- {line}" for line in before[first:last])
        yield from (f"+ {line}" for line in after[start:end])
