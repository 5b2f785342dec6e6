"""How often a handoff is tried by itself, and how long each next attempt waits.

A worker that dies of its task takes the next worker with it, and so on. So attempts end: after the last one the handoff
is parked, which means that it has failed and that only somebody who says so tries it again.
"""

import random
from datetime import timedelta
from typing import Final

from batonpass.errors import AttemptsExhaustedError
from batonpass.handoff.history.offers import read_policy
from batonpass.handoff.runtime.desk import Desk
from batonpass.ledger.position import need
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import StreamId
from batonpass.model.bodies.body import Body, ChildHead, HandoffInitiated, HandoffLapsed, HandoffParked, Kind
from batonpass.model.ledger.run import Handoff
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

RETRIES: Final = "service:retries"  # in whose name a handoff is tried again by itself

_FIRST_PAUSE: Final = timedelta(seconds=1)
_LONGEST_PAUSE: Final = timedelta(minutes=5)


def attempts_allowed(offered: HandoffInitiated, most: int) -> int:
    """Return how many attempts at a handoff begin by themselves: as its offer says, and at most as its policies say."""
    return most if offered.retries is None else min(most, offered.retries + 1)


def pause_after(attempt: int) -> timedelta:
    """Return how long the next attempt waits: twice as long each time, and a random part of it.

    Without the random part, attempts that failed together would be tried together again.
    """
    longest = min(_FIRST_PAUSE * (1 << min(attempt - 1, 20)), _LONGEST_PAUSE)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - no secret


def is_last(desk: Desk, view: LedgerView, handoff: Handoff) -> bool:
    """Return whether the current attempt at a handoff is the last that began by itself."""
    offer = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    if not isinstance(offer.body, HandoffInitiated):
        return False  # edited; the verifier says so
    allowed = attempts_allowed(offer.body, desk.policy_with(read_policy(view, offer)).attempts)
    return handoff.attempt >= allowed and count_begun(view, handoff) >= allowed


def count_begun(view: LedgerView, handoff: Handoff) -> int:
    """Return how many attempts at a handoff count: one that stopped to wait, or for an approval, was no failure."""
    if handoff.attempt == 0:
        return 0
    stopped = view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))
    return handoff.attempt - sum(1 for _ in stopped)


def park(desk: Desk, handoff: Handoff) -> None:
    """End the last attempt of a worker that is gone: the handoff has failed, and is not tried again by itself."""
    why = AttemptsExhaustedError(handoff.id, handoff.attempt, "its worker was lost, as others may have been before")

    def lapsed(known: Handoff, ended: ChildHead | None) -> Body:
        return HandoffLapsed(handoff=known.id, attempt=known.attempt, ended=need(ended, known))

    parked = HandoffParked(handoff=handoff.id, attempt=handoff.attempt, error=why.code)
    # In one commit: a worker that waits for work would take it in between.
    desk.recording.act(handoff.id, lapsed, (desk.text(REASON, str(why)),), then=parked)
