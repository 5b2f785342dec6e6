"""Finds where a recorded change applies in a text that may differ from the one it was made in."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import FileChange, Hunk
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.attribution.changes.mark import Weight, weight


class Splice(Struct, frozen=True):
    """A hunk without context: lines from an index on that were replaced."""

    index: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    is_shown: bool = False  # came with context from a diff, which may name another of several equal lines in a row


def splices_of(hunks: Iterable[Hunk]) -> list[Splice]:
    """Return the changes of hunks, without their context."""
    return [splice for hunk in hunks for splice in _spliced(hunk)]


def _spliced(hunk: Hunk) -> list[Splice]:
    if not hunk.removed or not hunk.added:
        return [Splice(hunk.old_index, hunk.removed, hunk.added)] if hunk.removed or hunk.added else []
    inner = hunks_between(hunk.removed, hunk.added)
    is_shown = sum(one.old_count for one in inner) < hunk.old_count
    return [Splice(hunk.old_index + one.old_index, one.removed, one.added, is_shown) for one in inner]


def place_splices(
    change: FileChange, splices: Sequence[Splice], lines: Sequence[str], *, exact: bool
) -> list[Splice] | None:
    """Return the splices of a change at their positions in these lines; None if that is uncertain.

    With `exact`, these are the lines that the change began with.
    """
    placed: Sequence[Splice] | None = splices
    if exact:
        placed = splices if all(_fits(splice, lines) for splice in splices) else None
    elif change.hunks is None:
        placed = None
    elif not is_there(change.hunks, lines):
        placed = _placed_elsewhere(change.hunks, lines)
    return None if placed is None else _slid_down(placed, lines)


def _slid_down(splices: Sequence[Splice], lines: Sequence[str]) -> list[Splice]:
    """Move pure insertions and deletions as far down as possible, where git reports them."""
    slid: list[Splice] = []
    edge = len(lines)
    for splice in reversed(splices):
        moved = _slide(splice, lines, edge) if splice.is_shown and not (splice.removed and splice.added) else splice
        slid.append(moved)
        edge = moved.index
    return slid[::-1]


def _slide(splice: Splice, lines: Sequence[str], edge: int) -> Splice:
    block = splice.removed or splice.added
    size = len(block)
    end = splice.index + len(splice.removed)
    steps = 0
    while end + steps < edge and lines[end + steps] == block[steps % size]:
        steps += 1
    turned = block[steps % size :] + block[: steps % size]
    return replace(
        splice,
        index=splice.index + steps,
        removed=turned if splice.removed else (),
        added=turned if splice.added else (),
    )


def _fits(splice: Splice, lines: Sequence[str]) -> bool:
    end = splice.index + len(splice.removed)
    return end <= len(lines) and tuple(lines[splice.index : end]) == splice.removed


def is_there(hunks: Sequence[Hunk], lines: Sequence[str]) -> bool:
    """Return whether the old side of each hunk is at its position and is distinctive enough to be sure."""
    return all(
        tuple(lines[hunk.old_index : hunk.old_index + hunk.old_count]) == hunk.removed
        and any(weight(line) is not Weight.TRIVIAL for line in hunk.removed)
        for hunk in hunks
    )


def _placed_elsewhere(hunks: Sequence[Hunk], lines: Sequence[str]) -> list[Splice] | None:
    """Return the splices moved to the only place where the old side of each hunk occurs."""
    places: list[Splice] = []
    edge = 0
    for hunk in hunks:
        start = _only_place(hunk.removed, lines)
        if start is None or start < edge:
            return None
        edge = start + hunk.old_count
        moved = Hunk(
            start + (hunk.old_count > 0), hunk.old_count, hunk.new_start, hunk.new_count, hunk.removed, hunk.added
        )
        places += splices_of([moved])
    return places


def _only_place(wanted: Sequence[str], lines: Sequence[str]) -> int | None:
    strong = next((index for index, line in enumerate(wanted) if weight(line) is Weight.STRONG), None)
    if strong is None:
        return None
    found = (
        index - strong
        for index, line in enumerate(lines)
        if line == wanted[strong]
        and index >= strong
        and list(lines[index - strong : index - strong + len(wanted)]) == list(wanted)
    )
    place, another = next(found, None), next(found, None)
    return place if another is None else None
