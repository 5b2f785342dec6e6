"""Changes without a recorded place: whoever wrote the same words is a candidate for the line."""

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

_REPLACED: Final = "old"  # an editor's arguments with these prefixes are what it removes


class Unplaced(Struct, frozen=True, kw_only=True):
    """A change that was certainly made, and the lines that its call was given to write."""

    recorded: RecordedChange
    written: frozenset[str]  # without white space

    def may_have_written(self, line: BlamedLine) -> bool:
        """Return whether this change may have written a line: the line is newer, and has its words."""
        if line.since is not None and self.recorded.change.at < line.since:
            return False
        bare = squeezed(line.text)
        # An editor may be given a whole line, or a part of it.
        return bool(bare) and any(one in bare for one in self.written)


def find_unplaced(view: LedgerView, recorded: Sequence[RecordedChange]) -> list[Unplaced]:
    """Return the changes without known lines, with the texts their calls were given."""
    return [
        Unplaced(recorded=one, written=frozenset(_written(view, one)))
        for one in recorded
        if one.change.hunks is None and not one.change.is_deletion
    ]


def with_candidates(line: BlamedLine, unplaced: Sequence[Unplaced]) -> BlamedLine:
    """Return an unexplained line with those who may have written it; other lines unchanged."""
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
