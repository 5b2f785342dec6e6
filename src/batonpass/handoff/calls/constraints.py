"""Keeping to constraints with what a call returned: checked as soon as it is there."""

from dataclasses import asdict, is_dataclass
from typing import Final

from batonpass.errors import ConstraintViolatedError
from batonpass.guard.constraints import find_broken_by_return
from batonpass.handoff.holding import Holding

BROKEN: Final = "result.constraint"


def find_broken(holding: Holding, tool: str, value: object) -> ConstraintViolatedError | None:
    """Return the first constraint that what a tool returned breaks, in words; None if it keeps to all."""
    bound = [one for one in holding.constraints if one.binds_to is not None]
    if not bound:
        return None
    found = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    broken = next(find_broken_by_return(bound, tool, found), None)
    return None if broken is None else ConstraintViolatedError(broken.constraint.sentence, broken.found)
