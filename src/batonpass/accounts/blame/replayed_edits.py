"""Edits without a recorded place, replayed: if they lead to the current file, their places are known.

A sub-agent's transcript says which text an editor replaced, but not where. If all edits since the last commit turn the
committed bytes into exactly the current file, each place is known. An edit that fits nowhere, or twice, or another
result proves nothing; then all of them stay without a place.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_changes import RecordedChange
from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.changes.sides import hunks_of
from batonpass.attribution.git.file_history import Committed
from batonpass.model.base.ids import CallId
from batonpass.records.call import read_arguments, read_call
from batonpass.store.port import LedgerView


def replay(
    view: LedgerView, recorded: Sequence[RecordedChange], committed: Committed | None, data: bytes
) -> list[RecordedChange]:
    """Return the changes with places, if the edits since the commit lead to these bytes; otherwise unchanged."""
    since = [one for one in recorded if committed is not None and one.change.at > committed.at]
    if committed is None or not since or not all(_is_bare(one) for one in since):
        return list(recorded)
    placed: dict[str, RecordedChange] = {}
    before = committed.data
    for one in since:
        after = _edited(before, _given(view, one))
        if after is None or one.receipt.id in placed:
            return list(recorded)
        change = replace(one.change, before=digest_of(before), after=digest_of(after), hunks=hunks_of(before, after))
        placed[one.receipt.id] = replace(one, change=change)
        before = after
    return [placed.get(one.receipt.id, one) for one in recorded] if before == data else list(recorded)


def as_matched(line: BlamedLine, recorded: Sequence[RecordedChange], found: Sequence[RecordedChange]) -> BlamedLine:
    """Return a line as matched, if its change got its place by replaying."""
    placed = {CallId(new.change.call) for old, new in zip(recorded, found, strict=True) if old is not new}
    is_placed = line.known is HowKnown.RECORDED and bool(placed.intersection(line.calls))
    return replace(line, known=HowKnown.MATCHED) if is_placed else line


def _is_bare(recorded: RecordedChange) -> bool:
    change = recorded.change
    return change.hunks is None and change.before is None and change.after is None and change.renamed_from is None


def _edited(before: bytes, given: dict[str, Any]) -> bytes | None:
    """Return the text after an edit; None if it does not fit exactly once."""
    match given:
        case {"old_string": str(old), "new_string": str(new)} if old:
            taken, put = old.encode("utf-8", "surrogatepass"), new.encode("utf-8", "surrogatepass")
            count = before.count(taken)
            is_clear = count == 1 or (count > 1 and given.get("replace_all") is True)
            return before.replace(taken, put) if is_clear else None
        case _:
            return None


def _given(view: LedgerView, recorded: RecordedChange) -> dict[str, Any]:
    call = read_call(view, recorded.receipt)
    return {} if call is None else read_arguments(view, call) or {}
