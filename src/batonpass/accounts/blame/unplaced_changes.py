"""Changes of which nobody noted the place: whoever wrote the words may have written the line, and is a candidate."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_changes import RecordedChange
from batonpass.attribution.changes.mark import squeezed
from batonpass.model.base.ids import CallId
from batonpass.records.call import read_arguments, read_call
from batonpass.store.port import LedgerView

_REPLACED: Final = "old"  # what begins so among the arguments of an editor is what it takes away


class Unplaced(Struct, frozen=True, kw_only=True):
    """A change that is known to have been made, and the lines that its call was given to write."""

    recorded: RecordedChange
    written: frozenset[str]  # without white space

    def may_have_written(self, line: BlamedLine) -> bool:
        """Return whether a line may be of this change: it was not there before, and has its words."""
        if line.since is not None and self.recorded.change.at < line.since:
            return False
        bare = squeezed(line.text)
        # An editor may be given a part of a line, or all of it.
        return bool(bare) and any(one in bare for one in self.written)


def find_unplaced(view: LedgerView, recorded: Sequence[RecordedChange]) -> list[Unplaced]:
    """Return the changes whose lines are not known, with what their calls were given to write."""
    return [
        Unplaced(recorded=one, written=frozenset(_written(view, one)))
        for one in recorded
        if one.change.hunks is None and not one.change.is_deletion
    ]


def with_candidates(line: BlamedLine, unplaced: Sequence[Unplaced]) -> BlamedLine:
    """Return an unexplained line with whoever may have written it after all; other lines as they are."""
    if line.known is not HowKnown.UNEXPLAINED:
        return line
    calls = tuple(CallId(one.recorded.change.call) for one in unplaced if one.may_have_written(line))
    return replace(line, known=HowKnown.CANDIDATES, calls=calls, or_nobody=True) if calls else line


def _written(view: LedgerView, recorded: RecordedChange) -> Iterator[str]:
    call = read_call(view, recorded.receipt)
    given = None if call is None else read_arguments(view, call)
    for words in _leaves(given or {}):
        yield from (bare for line in words.split("\n") if (bare := squeezed(line)))


def _leaves(value: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 - whatever JSON can hold
    match value:
        case dict():
            for key, inner in value.items():
                yield from _leaves(inner, key)
        case list():
            for inner in value:
                yield from _leaves(inner, name)
        case str() if not name.startswith(_REPLACED) and "path" not in name:
            yield value
        case _:
            return
