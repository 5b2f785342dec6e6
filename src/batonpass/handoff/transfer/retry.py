"""Try a handoff again: with the same baton, finished calls kept, and calls in doubt settled. And cancel one."""

from collections.abc import Iterable

from msgspec import Struct

from batonpass.errors import InputsChangedError, NotFoundError
from batonpass.handoff.approvals.decision import decide_call
from batonpass.handoff.history.past_calls import Resumption, read_resumption
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.close import cancel_handoff, withdraw
from batonpass.handoff.transfer.inputs import find_fallen, revise
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId
from batonpass.model.base.lifecycle import HandoffEvent, advance
from batonpass.model.bodies.body import HandoffReplaced, HandoffRetried, HandoffSettled, RunSettled, Settlement
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.offer_options import ChangedInputs


class NextAttempt(Struct, frozen=True, kw_only=True):
    """A handoff that waits for its next attempt, and the calls that this attempt starts from."""

    handoff: Handoff
    kept: Resumption

    def __repr__(self) -> str:
        kept, doubts = len(self.kept.finished), len(self.kept.in_doubt)
        return f"<NextAttempt at {self.handoff.id} to {self.handoff.to}, calls kept: {kept}, in doubt: {doubts}>"


def retry(
    desk: Desk,
    handoff: HandoffId,
    *,
    by: str,
    reason: str | None = None,
    repeat: Iterable[CallId] = (),
    skip: Iterable[CallId] = (),
    inputs: ChangedInputs | None = None,
) -> NextAttempt:
    """Make a handoff that failed, was declined or was refuted wait for another attempt by the same agent.

    `repeat` and `skip` settle calls in doubt. Raises `IllegalTransitionError` if it cannot be tried again, and
    `InputsChangedError` if a result that it was offered with no longer stands, unless `inputs` says what to do.
    """
    body = HandoffRetried(handoff=handoff, by=PrincipalId(by))
    return _again(desk, handoff, body, reason, {Settlement.REPEAT: repeat, Settlement.SKIP: skip}, inputs=inputs)


def replace_agent(
    desk: Desk,
    handoff: HandoffId,
    to: str,
    *,
    by: str,
    reason: str | None = None,
    repeat: Iterable[CallId] = (),
    skip: Iterable[CallId] = (),
    inputs: ChangedInputs | None = None,
) -> NextAttempt:
    """Give a handoff to another agent, with the same baton. Raises the same errors as `retry`."""
    body = HandoffReplaced(handoff=handoff, by=PrincipalId(by), to=AgentId(to))
    return _again(desk, handoff, body, reason, {Settlement.REPEAT: repeat, Settlement.SKIP: skip}, inputs=inputs)


def settle(
    desk: Desk, handoff: HandoffId, call: CallId, settlement: Settlement, *, by: str, reason: str | None = None
) -> None:
    """Settle a call in doubt: repeat it, skip it, or take the outcome that came late.

    Raises `NotFoundError` if it is not in doubt, or if no result of it came late.
    """
    with desk.store.view() as view:
        doubts = {doubt.id: doubt for doubt in read_resumption(view, view.get_handoff(handoff)).in_doubt}
    if call not in doubts:
        raise NotFoundError("call in doubt", call)
    late = doubts[call].late
    if settlement is Settlement.LATE and (late is None or not late.completed):
        raise NotFoundError("late result of call", call)
    body = HandoffSettled(handoff=handoff, by=PrincipalId(by), call=call, settlement=settlement)
    desk.recording.act(handoff, lambda _, __: body, () if reason is None else (desk.text(REASON, reason),))


def settle_own(
    desk: Desk, holding: Holding, call: CallId, settlement: Settlement, *, by: str, reason: str | None
) -> None:
    """Settle a call that an earlier attempt of this run's work left in doubt. Raises `NotFoundError`.

    For a held call of a run that goes on, `repeat` approves it and `skip` denies it.
    """
    handoff = holding.working.run.handoff
    held = holding.held.get(call) or holding.resumption.held.get(call)
    if held is not None and (held.stays or handoff is None):
        decide_call(desk, call, approved=settlement is Settlement.REPEAT, by=by, reason=reason)
        return
    if handoff is not None:
        settle(desk, handoff, call, settlement, by=by, reason=reason)
        return
    if call not in {doubt.id for doubt in holding.resumption.in_doubt}:
        raise NotFoundError("call in doubt", call)
    body = RunSettled(run=holding.id, by=PrincipalId(by), call=call, settlement=settlement)
    fill_gap(desk, holding)
    desk.recording.record(holding.working, body, () if reason is None else (desk.text(REASON, reason),))


def cancel(desk: Desk, handoff: HandoffId, *, by: str, reason: str) -> None:
    """Cancel a handoff and everything below it; runs that work on them are fenced. Raises `IllegalTransitionError`."""
    cancel_handoff(desk, handoff, by=by, reason=reason)
    withdraw(desk, handoff, by=by, reason=reason)


def _again(
    desk: Desk,
    handoff: HandoffId,
    body: HandoffRetried | HandoffReplaced,
    reason: str | None,
    settlements: dict[Settlement, Iterable[CallId]],
    *,
    inputs: ChangedInputs | None,
) -> NextAttempt:
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        changed = () if inputs is not None else tuple(find_fallen(view, known))
    # Check the transition before anything is settled, so that a refused retry changes nothing.
    advance(
        known.state, HandoffEvent.RETRY if isinstance(body, HandoffRetried) else HandoffEvent.REPLACE, known.carrier
    )
    if changed:
        raise InputsChangedError(handoff, changed)
    if inputs is ChangedInputs.FRESH:
        revise(desk, handoff, by=body.by)
    for settlement, calls in settlements.items():
        for call in calls:
            settle(desk, handoff, call, settlement, by=body.by)
    desk.recording.act(handoff, lambda _, __: body, () if reason is None else (desk.text(REASON, reason),))
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        return NextAttempt(handoff=known, kept=read_resumption(view, known))
