"""Heeding: a run that makes a held call again goes on as somebody decided meanwhile, in whichever process."""

from batonpass.errors import CallDeniedError, CallSuspendedError
from batonpass.guard.gates import Decision
from batonpass.handoff.desk import Desk
from batonpass.handoff.transfer.decision import refuse_overdue
from batonpass.handoff.transfer.holds import require_opened
from batonpass.model.bodies import ToolApproved, ToolHeld
from batonpass.records.hold import find_decision, get_held_call


def heed(desk: Desk, held: ToolHeld, decision: Decision) -> CallDeniedError | None:
    """Return why a held call of a run that goes on is not to be made; None if somebody let it be made.

    Raises `CallSuspendedError` while nobody has decided, `UnprovenError` if a proof does not hold that it takes, and
    `FourEyesError` if fewer let it be made than it takes.
    """
    refuse_overdue(desk, held.call)
    with desk.store.view() as view:
        found = find_decision(view, held.call)
        if found is None:
            raise CallSuspendedError(held.tool, held.call, held.rule, decision.sentence, None)
        _, body = found
        hold, _ = get_held_call(view, held.call)
        if isinstance(body, ToolApproved):
            require_opened(view, hold, body)
            return None
    where = desk.gates.where(held.rule)
    return CallDeniedError(held.tool, held.rule, where, f"{body.by} did not let {held.tool} be made")
