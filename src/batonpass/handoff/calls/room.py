"""Room under limits: asked for before a call, and counted by the very commit that writes about it."""

from collections.abc import Callable

from batonpass.errors import BudgetExhaustedError
from batonpass.handoff.calls.limits import before_call, explain_spent, find_overdue, find_overspent
from batonpass.handoff.calls.pending import PendingCall
from batonpass.handoff.calls.receipts import write_about_call
from batonpass.model.bodies import Body
from batonpass.model.charge import Charge, is_revocation
from batonpass.model.content import Content
from batonpass.model.content_names import PERMIT


def check_limits(pending: PendingCall) -> None:
    """Refuse a call for which nothing is left of a limit, or no time. Raises `ConstraintViolatedError`.

    It is asked before anything that may hold the call: nobody approves what cannot be made. The commit asks again.
    """
    bounds, counting = pending.holding.bounds, pending.counting
    at = pending.present()
    if not bounds.accounts and not counting.permits and not counting.line:
        return
    for rule, overdue in find_overdue(bounds.accounts, at):
        pending.refuse(rule, overdue)
    refused = _find_full(pending)
    while refused and counting.has_other(refused[0]):
        refused = _find_full(pending)
    for one in refused:
        pending.refuse(*explain_spent(bounds, one))


def _find_full(pending: PendingCall) -> list[BudgetExhaustedError]:
    found = find_overspent(pending.counting, pending.used)
    return [one for one in found if not is_revocation(one.account)]


def write_counted(pending: PendingCall, make: Callable[[tuple[Charge, ...]], Body], contents: list[Content]) -> bool:
    """Write one receipt about a call with what it uses up, if there is room; return whether it could be written.

    Room is found by the commit itself, so two processes never share the last of it.
    """
    counting = pending.counting
    while True:
        body = make(before_call(counting.counted()))
        # Which permit counts is known only now: one that is full makes room for another.
        permits = _permits(pending)
        within = counting.within() if pending.enforced else ()
        try:
            return write_about_call(pending.desk, pending.holding, body, *contents, *permits, within=within) is not None
        except BudgetExhaustedError as refused:
            if counting.has_other(refused):
                continue
            rule, refusal = explain_spent(pending.holding.bounds, refused)
        pending.deny(rule, refusal)


def _permits(pending: PendingCall) -> tuple[Content, ...]:
    """Return in words by which permits a call may be made, from its own run up to where the grant begins."""
    if not pending.counting.permits:
        return ()
    permits = pending.counting.chosen()
    holding = pending.holding
    *above, own = permits
    lines = [f"{terms.agent} may delegate {one.text}" for terms, one in zip(holding.bounds.terms, above, strict=False)]
    return (pending.desk.text(PERMIT, "\n".join((f"{holding.agent} may {own.text}", *reversed(lines)))),)
