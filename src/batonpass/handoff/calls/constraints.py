"""Typed constraints of a run: checked against the arguments of each call, and against its result."""

from typing import TYPE_CHECKING, Final

from batonpass.errors import ConstraintViolatedError
from batonpass.guard.constraints.constraints import find_broken_by_call, find_broken_by_return
from batonpass.model.base.value import parts_of
from batonpass.model.baton.items import Constraint

if TYPE_CHECKING:
    from batonpass.handoff.calls.pending_call import PendingCall
    from batonpass.handoff.runtime.run_state import Holding

BROKEN: Final = "result.constraint"
CONSTRAINT: Final = "constraint"


def check_constraints(pending: "PendingCall") -> None:
    """Refuse a call whose arguments break a constraint of its run. Raises `ConstraintViolatedError`."""
    # Look for constraints first: binding arguments to their names costs more than the rest, and most runs have none.
    bound = _bound(pending.holding)
    if not bound:
        return
    try:
        for broken in find_broken_by_call(bound, pending.declared.name, pending.call.bound):
            pending.refuse(CONSTRAINT, ConstraintViolatedError(broken.constraint.sentence, broken.found))
    except Exception as error:  # noqa: BLE001 - any error of a guard stops an enforced call
        pending.stop_unjudged(error)


def find_broken(holding: "Holding", tool: str, value: object) -> ConstraintViolatedError | None:
    """Return an error about the first constraint that the result of a tool breaks; None if it breaks none."""
    bound = _bound(holding)
    if not bound:
        return None
    broken = next(find_broken_by_return(bound, tool, _opened(value)), None)
    return None if broken is None else ConstraintViolatedError(broken.constraint.sentence, broken.found)


def _bound(holding: "Holding") -> list[Constraint]:
    """Return the constraints of a run that bind to an argument or a result, without those that were relaxed."""
    found = []
    with holding.lock:
        for item in holding.notes.values():
            value = item.value
            if isinstance(value, Constraint) and value.binds_to is not None and item.id not in holding.relaxed:
                found.append(value)
    return found


def _opened(value: object) -> object:
    """Return the value with every record in it as a mapping, because a constraint may bind to a field of a record."""
    if (parts := parts_of(value)) is not None:
        return {name: _opened(part) for name, part in parts.items()}
    if isinstance(value, dict):
        return {name: _opened(part) for name, part in value.items()}
    return [_opened(part) for part in value] if isinstance(value, list | tuple) else value
