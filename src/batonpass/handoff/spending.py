"""What calls cost, and what of a budget is used up."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from batonpass.errors import ConstraintViolatedError
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.tools import ToolCall
from batonpass.model.baton import Budget
from batonpass.model.checks import LARGEST_INTEGER

_MILLION: Final = 1_000_000


def find_overspent(desk: Desk, holding: Holding) -> Iterator[ConstraintViolatedError]:
    """Yield what of the budget is used up."""
    budget = Budget() if holding.baton is None or holding.baton.brief.budget is None else holding.baton.brief.budget
    elapsed = (desk.clock.now() - holding.working.run.started_at).total_seconds()
    if budget.calls is not None and holding.calls >= budget.calls:
        yield ConstraintViolatedError(f"at most {budget.calls} calls", f"this is call {holding.calls + 1}")
    if budget.seconds is not None and elapsed >= budget.seconds:
        yield ConstraintViolatedError(f"at most {budget.seconds} seconds", f"{elapsed:.0f} have passed")
    if budget.cost is not None and holding.cost >= budget.cost:
        spent = f"{Decimal(holding.cost) / _MILLION} are spent"
        yield ConstraintViolatedError(f"a cost of at most {Decimal(budget.cost) / _MILLION}", spent)


def cost_of(call: ToolCall[Any], value: object) -> int | None:
    """Return what a call cost, in millionths; None if nobody can tell. The call was made, whatever this finds."""
    if call.declared.cost is None:
        return 0
    try:
        return min(max(0, math.ceil(Decimal(call.declared.cost(value)) * _MILLION)), LARGEST_INTEGER)
    except Exception:  # noqa: BLE001 - a function of whoever declared the tool
        return None
