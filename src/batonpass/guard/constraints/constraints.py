"""Evaluates typed constraints that bind to an argument or a result.

A constraint binds to `call:TOOL.ARGUMENT`, where TOOL may be `*`, to `returned:TOOL.FIELD` of a call's return value, or
to `result:FIELD` of a report. ARGUMENT and FIELD may be dotted paths into objects. A value that cannot be compared
breaks the constraint. So does a missing value: the tool would use its default, and nobody can see whether that is
within it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from batonpass.guard.constraints.comparison import Fit, compare, is_refusing
from batonpass.model.base.checks import shorten
from batonpass.model.base.value import Value
from batonpass.model.baton.items import Constraint, Operator
from batonpass.model.grants.call import Opaque

RETURNED: Final = "returned:"
_CALL: Final = "call:"
_RESULT: Final = "result:"
_ANY_TOOL: Final = "*"
_SHOWN: Final = 200
_ABSENT: Final = object()


class Check(Value, frozen=True, kw_only=True):
    """A constraint that was evaluated against the value it binds to."""

    constraint: Constraint
    path: str
    value: object
    holds: bool

    @property
    def found(self) -> str:
        """Return a description of the value that was found."""
        path = shorten(self.path[:_SHOWN])
        return f"{path} is not given" if self.value is _ABSENT else f"{path} is {_shown(self.value)}"


def find_broken_by_call(
    constraints: Iterable[Constraint],
    tool: str,
    arguments: Mapping[str, object],
) -> Iterator[Check]:
    """Yield the constraints that a call breaks by an argument, or by leaving it out."""
    return (check for check in find_checks_of_call(constraints, tool, arguments) if not check.holds)


def find_broken_by_return(constraints: Iterable[Constraint], tool: str, value: object) -> Iterator[Check]:
    """Yield the constraints that the return value of a tool breaks by a field, or by lacking it."""
    return (check for check in find_checks_of_return(constraints, tool, value) if not check.holds)


def find_broken_by_result(constraints: Iterable[Constraint], value: object) -> Iterator[Check]:
    """Yield the constraints that a result breaks by a field, or by lacking it."""
    return (check for check in find_checks_of_result(constraints, value) if not check.holds)


def find_checks_of_call(
    constraints: Iterable[Constraint],
    tool: str,
    arguments: Mapping[str, object],
) -> Iterator[Check]:
    """Yield every constraint that applies to a call, and whether it holds."""
    for constraint in constraints:
        for bound_tool in (tool, _ANY_TOOL):
            path = _bound(constraint, _CALL, bound_tool)
            if path is None:
                continue
            # A constraint for all tools applies only to those that have the argument.
            optional = bound_tool == _ANY_TOOL or _only_refuses(constraint)
            if (check := _check(constraint, arguments, path, optional=optional)) is not None:
                yield check
            break


def find_checks_of_return(constraints: Iterable[Constraint], tool: str, value: object) -> Iterator[Check]:
    """Yield every constraint that applies to the return value of a tool, and whether it holds."""
    for constraint in constraints:
        if (path := _bound(constraint, RETURNED, tool)) is not None:
            check = _check(constraint, value, path, optional=_only_refuses(constraint))
            if check is not None:
                yield check


def find_checks_of_result(constraints: Iterable[Constraint], value: object) -> Iterator[Check]:
    """Yield every constraint that applies to a result, and whether it holds."""
    for constraint in constraints:
        if constraint.binds_to is not None and constraint.binds_to.startswith(_RESULT):
            path = constraint.binds_to.removeprefix(_RESULT)
            if (check := _check(constraint, value, path, optional=False)) is not None:
                yield check


def _bound(constraint: Constraint, to: str, tool: str) -> str | None:
    # Names of tools contain dots too, so only a comparison with the called tool shows where its name ends.
    bound = constraint.binds_to or ""
    if bound == f"{to}{tool}":
        return ""  # it names no argument, so nothing is found there and it is broken
    prefix = f"{to}{tool}."
    return bound.removeprefix(prefix) if bound.startswith(prefix) else None


def _only_refuses(constraint: Constraint) -> bool:
    return constraint.operator is not None and is_refusing(Operator(constraint.operator))


def _check(constraint: Constraint, value: object, path: str, *, optional: bool) -> Check | None:
    if constraint.operator is None or constraint.value is None:
        return None  # prose: nothing that a program could compare
    found = _at(value, path)
    if found is _ABSENT and optional and path:
        return None
    holds = found is not _ABSENT and compare(Operator(constraint.operator), constraint.value, found) is Fit.HOLDS
    return Check(constraint=constraint, path=path, value=found, holds=holds)


def _at(value: object, path: str) -> object:
    for name in path.split("."):
        if isinstance(value, Opaque):
            return value  # not absent: nobody can see whether the value is there, so no constraint holds for it
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _shown(found: object) -> str:
    # Some values cannot be written out: an integer with too many digits, a list that is nested too deeply.
    match found:
        case str():
            return shorten(found[:_SHOWN])
        case int() if found.bit_length() > _SHOWN:
            return f"a number of {found.bit_length():,} bits"
        case Mapping():
            return "an object"
        case list() | tuple():
            return f"a list of {len(found):,}"
        case None | int() | float() | datetime() | Opaque():
            return str(found) if isinstance(found, datetime | Opaque) else shorten(found)
        case _:
            return f"of type {type(found).__name__}"
