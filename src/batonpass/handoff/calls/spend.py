"""What calls cost, and what a run uses up besides them."""

import math
from decimal import Decimal
from typing import Any, Final

from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.limits import (
    Counted,
    Counting,
    explain_spent,
    find_overdue,
    find_overspent,
    read_used,
    used_up,
)
from batonpass.handoff.calls.receipts import deny_call, write_about_call
from batonpass.handoff.calls.tools import ToolCall
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.model.bodies import RunSpent
from batonpass.model.charge import Unit
from batonpass.model.checks import LARGEST_INTEGER, require_integer
from batonpass.model.receipt import Mode

ON: Final = "on"
_MILLION: Final = 1_000_000


def cost_of(call: ToolCall[Any], value: object) -> int | None:
    """Return what a call cost, in millionths; None if nobody can tell. The call was made, whatever this finds."""
    if call.declared.cost is None:
        return 0
    try:
        return _millionths(Decimal(call.declared.cost(value)))
    except Exception:  # noqa: BLE001 - a function of whoever declared the tool
        return None


def spend(desk: Desk, holding: Holding, *, tokens: int, cost: Decimal | int | str, on: str | None) -> None:
    """Record what a run used up besides its calls, and count it against every limit above it.

    It is used already: nothing is refused here, and whatever comes next is. Raises `InvalidValueError`.
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


def require_room(desk: Desk, holding: Holding, *, what: str) -> None:
    """Refuse to go on where nothing is left of a limit, its time is over, or what it hangs from was revoked.

    Asked before something that uses up what no call counts. An observed run goes on. Raises `ConstraintViolatedError`
    and `GrantRevokedError`, and records that.
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
        deny_call(desk, holding, what, {}, rule=rule, reason=str(refusal))
        raise refusal


def counts(holding: Holding, unit: Unit) -> bool:
    """Return whether somebody limits something for a run."""
    return any(getattr(account.limits, unit) is not None for account in holding.bounds.accounts)


def _millionths(amount: Decimal) -> int:
    return min(max(0, math.ceil(amount * _MILLION)), LARGEST_INTEGER)
