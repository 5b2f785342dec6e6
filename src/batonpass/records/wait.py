"""Attempts that stopped in order to wait for another handoff, and when such a wait is over."""

from typing import Final

from msgspec import Struct

from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import HandoffHeld, Kind
from batonpass.model.ledger.run import Handoff
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# It ended, at least for now: only somebody's decision can make it go on.
ENDED: Final = frozenset(
    {
        State.COMPLETED,
        State.VERIFIED,
        State.REFUTED,
        State.FAILED,
        State.DECLINED,
        State.DENIED,
        State.CANCELLED,
        State.EXPIRED,
    },
)


class StoppedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt that stopped until another handoff is decided or has ended. Nobody has to approve it."""

    handoff: HandoffId
    attempt: int  # the one that stopped
    awaits: HandoffId
    until: WaitUntil


def find_wait(view: LedgerView, handoff: Handoff) -> StoppedAttempt | None:
    """Return the handoff that a held one waits for; None if it is not held, or somebody has to approve it."""
    if handoff.state is not State.HELD or handoff.attempt == 0:
        return None
    held = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.HANDOFF_HELD))]
    body = read_receipt(held[-1]).body if held else None
    if not isinstance(body, HandoffHeld) or body.awaits is None or body.wait_until is None:
        return None
    return StoppedAttempt(handoff=handoff.id, attempt=body.attempt, awaits=body.awaits, until=body.wait_until)


def find_blocker(view: LedgerView, handoff: Handoff) -> Handoff | None:
    """Return the handoff that somebody has to approve or answer before this one goes on; None if there is none.

    It is the handoff itself, or one that it waits for.
    """
    while (wait := find_wait(view, handoff)) is not None:
        handoff = view.get_handoff(wait.awaits)
    return handoff if handoff.state in {State.HELD, State.ASKED} else None


def is_wait_over(view: LedgerView, handoff: Handoff, until: WaitUntil) -> bool:
    """Return whether nobody has to wait for this handoff any longer.

    It ended; or somebody has to act; or, after a decision, its caller can take it.
    """
    if handoff.state in ENDED:
        return True
    if until is WaitUntil.SETTLED:
        return find_blocker(view, handoff) is not None
    return handoff.carrier is Carrier.CALLER and handoff.state is State.OFFERED


def find_waiting(view: LedgerView, handoff: Handoff) -> StoppedAttempt | None:
    """Return the attempt that stopped in order to wait for this handoff; None if there is none."""
    above = view.get_run(handoff.parent).handoff
    wait = None if above is None else find_wait(view, view.get_handoff(above))
    return wait if wait is not None and wait.awaits == handoff.id else None


def find_step_below(view: LedgerView, run: RunId, handoff: HandoffId) -> Handoff | None:
    """Return the handoff of this run's work that leads down to another one: itself, or one above it.

    None if that other one is not below this run.
    """
    work = view.get_run(run).handoff
    known = view.get_handoff(handoff)
    while True:
        parent = view.get_run(known.parent)
        if parent.id == run or (work is not None and parent.handoff == work):
            return known
        if parent.handoff is None:
            return None
        known = view.get_handoff(parent.handoff)
