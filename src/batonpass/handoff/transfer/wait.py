"""Attempts that stop and go on later: they hold no worker while they wait for a handoff below them.

An attempt stops with one receipt, `handoff.held`, which names the handoff for which it waits. Its run is over, its
lease too, and nothing of it stays in memory. When the wait is over, `handoff.resumed` makes the handoff wait for its
next attempt, which finds everything finished in the record. The process that ends a wait also resumes the waiting
handoff; if it dies in between, the next sweep does it.
"""

from typing import Final

from batonpass.errors import (
    CallSuspendedError,
    HandoffAskedError,
    HandoffHeldError,
    HandoffSuspendedError,
    IllegalTransitionError,
    StaleHeadError,
)
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.ledger.position import need
from batonpass.model.base.ids import CallId, HandoffId
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.bodies.body import Body, ChildHead, HandoffHeld, HandoffResumed, RunSuspended
from batonpass.model.ledger.run import Handoff
from batonpass.records.wait import StoppedAttempt, find_step_below, find_wait, find_waiting, is_wait_over

# The errors with which a run is left because somebody has to decide.
_WAITS: Final = (CallSuspendedError, HandoffHeldError, HandoffAskedError, HandoffSuspendedError)

AWAITS: Final = "handoff.awaits"  # the reason in `handoff.held`


def suspend(desk: Desk, holding: Holding, awaits: HandoffId, until: WaitUntil) -> HandoffSuspendedError:
    """End an attempt until another handoff is decided or has ended; return the error that leaves its code.

    The lease ends in the same commit. The run can record nothing more. Raises `StreamClosedError` if the run is over.
    """
    handoff = holding.working.run.handoff
    assert handoff is not None, "a root has no handoff that could wait"  # noqa: S101 - callers look first

    def held(known: Handoff, ended: ChildHead | None) -> Body:
        return HandoffHeld(
            handoff=known.id,
            attempt=known.attempt,
            ended=need(ended, known),
            reason=AWAITS,
            awaits=awaits,
            wait_until=until,
        )

    desk.recording.act(handoff, held)
    # It may have ended between our last look and this commit, when nobody waited for it yet. So look once more.
    with desk.store.view() as view:
        wait = find_wait(view, view.get_handoff(handoff))
    if wait is not None:
        _resume(desk, wait)
    return HandoffSuspendedError(handoff, awaits)


def leave(desk: Desk, holding: Holding, error: BaseException | None) -> bool:
    """Let a run wait, instead of failing, if it is left because somebody has to decide. Return whether it waits.

    An attempt stops until the handoff below it is decided, and so it goes up, level by level. A root is left open, and
    can be resumed. A run that fails for any other reason does not wait.
    """
    if not isinstance(error, _WAITS) or holding.replaying or holding.stays_open:
        return False
    own, named = holding.working.run.handoff, error.handoff
    if named is not None and named == own:
        return True  # its own attempt has stopped already
    if isinstance(error, CallSuspendedError) and named is None:
        is_own = own is None and CallId(error.call) in {*holding.held, *holding.resumption.held}
        if is_own:
            desk.recording.record(holding.working, RunSuspended(run=holding.id, call=CallId(error.call)))
        return is_own
    with desk.store.view() as view:
        # The error may come from far below. We wait for our own handoff on the way down to it.
        step = None if named is None else find_step_below(view, holding.id, HandoffId(named))
        # If that one does not wait itself, it would let us go on at once, to the same error, for ever.
        if step is None or is_wait_over(view, step, WaitUntil.DECIDED):
            return False
    if own is None:
        desk.recording.record(holding.working, RunSuspended(run=holding.id, awaits=step.id))
    else:
        suspend(desk, holding, step.id, WaitUntil.DECIDED)
    return True


def resume_above(desk: Desk, handoff: HandoffId) -> int:
    """Resume the attempts that wait for this handoff, if their wait is over, and so on upwards. Return how many."""
    resumed = 0
    while True:
        with desk.store.view() as view:
            wait = find_waiting(view, view.get_handoff(handoff))
        if wait is None or not _resume(desk, wait):
            return resumed
        resumed, handoff = resumed + 1, wait.handoff


def resume_all(desk: Desk) -> int:
    """Resume every attempt whose wait is over, whichever process ended it. Return how many."""
    with desk.store.view() as view:
        waits = [wait for handoff in view.find_held() if (wait := find_wait(view, handoff)) is not None]
    return sum(1 + resume_above(desk, wait.handoff) for wait in waits if _resume(desk, wait))


def _resume(desk: Desk, wait: StoppedAttempt) -> bool:
    """Make a handoff wait for its next attempt if its wait is over. Return whether we did."""
    with desk.store.view() as view:
        if not is_wait_over(view, view.get_handoff(wait.awaits), wait.until):
            return False
    body = HandoffResumed(handoff=wait.handoff, attempt=wait.attempt, awaits=wait.awaits)
    try:
        desk.recording.act(wait.handoff, lambda _, __: body)
    except (IllegalTransitionError, StaleHeadError):
        return False  # somebody else resumed it, or ended it
    return True
