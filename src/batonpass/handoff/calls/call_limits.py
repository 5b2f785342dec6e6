"""Limits of calls and runs: checked before the call, and counted in the commit that writes its receipt.

The first check gives an early and clear refusal. Only the commit decides, because other processes share the limits.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from batonpass.errors import BudgetExhaustedError, InvalidValueError
from batonpass.handoff.calls.call_receipts import deny_call, write_about_call
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.grants.limit_use import (
    Counted,
    Counting,
    before_call,
    explain_spent,
    find_overdue,
    find_overspent,
    read_used,
    used_up,
)
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.checks import LARGEST_INTEGER, require_integer
from batonpass.model.base.content_names import PERMIT
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body, RunSpent
from batonpass.model.grants.charge import Charge, Unit, is_revocation
from batonpass.model.ledger.content import Content

ON: Final = "on"
_MILLION: Final = 1_000_000


def cost_of(call: ToolCall[Any], value: object) -> int | None:
    """Return the cost of a call that was made, in millionths; None if the tool's own function fails to say it."""
    if call.declared.cost is None:
        return 0
    try:
        return _millionths(Decimal(call.declared.cost(value)))
    except Exception:  # noqa: BLE001 - the function of a tool may raise anything
        return None


def spend(desk: Desk, holding: Holding, *, tokens: int, cost: Decimal | int | str, on: str | None) -> None:
    """Record tokens and cost that a run used outside of calls, and count them against every limit above it.

    They are used already, so nothing is refused here, even beyond a limit: the next call is. Raises
    `InvalidValueError`.
    """
    require_integer("tokens", tokens)
    try:
        millionths = _millionths(Decimal(cost))
    except (ArithmeticError, ValueError, TypeError):
        raise InvalidValueError("cost", "is no amount") from None
    if holding.replaying or not (tokens or millionths):
        return
    counted = [Counted(account.id, account.limits) for account in holding.bounds.accounts]
    spent = RunSpent(
        run=holding.id,
        tokens=tokens,
        cost=millionths,
        charges=used_up(counted, {Unit.TOKENS: tokens, Unit.SPEND: millionths}),
    )
    write_about_call(desk, holding, spent, *(() if on is None else (desk.text(ON, on),)))


def require_room(desk: Desk, holding: Holding, *, tool: str) -> None:
    """Refuse to go on if a limit is used up, its time is over, or the grant was revoked.

    Used before work that is not counted as a call, such as a turn of a model. An observed run goes on. Raises
    `ConstraintViolatedError` and `GrantRevokedError`, once the denial is recorded.
    """
    bounds = holding.bounds
    if holding.working.mode is not Mode.ENFORCED or holding.replaying:
        return
    counting = Counting(bounds.accounts, line=bounds.line if bounds.chain else ())
    overdue = find_overdue(bounds.accounts, desk.clock.now())
    spent = find_overspent(counting, read_used(desk, counting), calls=False)
    found = next(iter((*overdue, *(explain_spent(bounds, one) for one in spent))), None)
    if found is not None:
        rule, refusal = found
        deny_call(desk, holding, tool, {}, rule=rule, reason=str(refusal))
        raise refusal


def counts(holding: Holding, unit: Unit) -> bool:
    """Return whether a run has a limit in this unit."""
    return any(getattr(account.limits, unit) is not None for account in holding.bounds.accounts)


def _millionths(amount: Decimal) -> int:
    # Rounded up: otherwise a great many tiny costs would count as nothing.
    return min(max(0, math.ceil(amount * _MILLION)), LARGEST_INTEGER)


def check_limits(pending: PendingCall) -> None:
    """Refuse a call if a limit or its time is used up. Raises `ConstraintViolatedError`.

    This comes before everything that may hold the call: nobody should approve a call that cannot be made. The commit
    checks the limits again.
    """
    bounds, counting = pending.holding.bounds, pending.counting
    at = pending.present()
    if not bounds.accounts and not counting.counted():
        return  # only revocations are left, and those are not limits
    for rule, overdue in find_overdue(bounds.accounts, at):
        pending.refuse(rule, overdue)
    # A full permit does not stop a call that another permit of the same hop allows as well.
    refused = _find_full(pending)
    while refused and counting.has_other(refused[0]):
        refused = _find_full(pending)
    for one in refused:
        pending.refuse(*explain_spent(bounds, one))


def _find_full(pending: PendingCall) -> list[BudgetExhaustedError]:
    found = find_overspent(pending.counting, pending.used)
    # A revocation is an account without room, so that a commit refuses both by one comparison. It has an error of its
    # own.
    return [one for one in found if not is_revocation(one.account)]


def write_counted(pending: PendingCall, make: Callable[[tuple[Charge, ...]], Body], contents: list[Content]) -> bool:
    """Write one receipt about a call together with its charges; return False if an observed run could not write it.

    The commit itself checks the limits, so two processes never share the last of one. If a limit is used up, the
    call is denied: raises `ConstraintViolatedError` and `GrantRevokedError`.
    """
    counting = pending.counting
    # It ends: each round marks one more permit as full, and a hop has only so many.
    while True:
        body = make(before_call(counting.counted()))
        # Only now is it known which permit counts: if one is used up, another one that also allows the call is tried.
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
    """Return the permits that allow a call, in words, from its own run up to the root."""
    if not pending.counting.permits:
        return ()
    *above, own = pending.counting.chosen()
    holding = pending.holding
    lines = [f"{holding.agent} may {own.text}"]
    for terms, permit in zip(reversed(holding.bounds.terms[: len(above)]), reversed(above), strict=True):
        lines.append(f"{terms.agent} may delegate {permit.text}")
    return (pending.desk.text(PERMIT, "\n".join(lines)),)
