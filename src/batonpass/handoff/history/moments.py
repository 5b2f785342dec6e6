"""Moments that receipts tell: a clock that is set back does not bring back what has ended."""

from collections.abc import Iterable
from datetime import datetime

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import StreamId
from batonpass.store.port import LedgerView
from batonpass.wire.codec import decode_receipt


def later(one: datetime, *others: datetime | None) -> datetime:
    """Return the latest of some moments of which all but the first may be unknown."""
    for other in others:
        if other is not None and other > one:
            one = other
    return one


def last_recorded(view: LedgerView, streams: Iterable[StreamId]) -> datetime | None:
    """Return when the last receipt of these streams was recorded, as it says itself; None if there are none."""
    found = []
    for stream in streams:
        try:
            head = view.get_stream(stream)
        except NotFoundError:
            continue  # of a handoff that nothing but its offer has happened to
        found.append(decode_receipt(view.get_receipt_at(stream, head.seq).payload).at)
    return max(found, default=None)
