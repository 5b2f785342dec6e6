"""Times from receipts. With them, a clock that is set back does not revive something that has ended."""

from collections.abc import Iterable
from datetime import datetime

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import StreamId
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt


def later(one: datetime, *others: datetime | None) -> datetime:
    """Return the latest of some times. All but the first may be None."""
    for other in others:
        if other is not None and other > one:
            one = other
    return one


def last_recorded(view: LedgerView, streams: Iterable[StreamId]) -> datetime | None:
    """Return the time in the last receipt of these streams; None if there are no receipts."""
    found = []
    for stream in streams:
        try:
            head = view.get_stream(stream)
        except NotFoundError:
            continue  # a handoff of which there is only the offer
        found.append(decode_receipt(view.get_receipt_at(stream, head.seq).payload).at)
    return max(found, default=None)
