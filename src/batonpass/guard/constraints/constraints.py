"""Typed constraints that bind to an argument or a result: whether they hold.

A constraint binds to `call:TOOL.ARGUMENT`, where TOOL may be `*`, to `returned:TOOL.FIELD` of what a call gave back, or
to `result:FIELD` of what a run reports. ARGUMENT and FIELD may be dotted paths into objects. What cannot be compared is
broken, and so is a constraint whose value is not there: whoever leaves an argument out gets the tool's default, and
nobody can see whether that keeps to it.
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
    """A constraint that was held against what stands where it binds to."""

    constraint: Constraint
    path: str
    value: object
    holds: bool

    @property
    def found(self) -> str:
        """Return what was found there, in words."""
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
    """Yield the constraints that what a tool returned breaks by a field, or by not having it."""
    return (check for check in find_checks_of_return(constraints, tool, value) if not check.holds)


def find_broken_by_result(constraints: Iterable[Constraint], value: object) -> Iterator[Check]:
    """Yield the constraints that a result breaks by a field, or by not having it."""
    return (check for check in find_checks_of_result(constraints, value) if not check.holds)


def find_checks_of_call(
    constraints: Iterable[Constraint],
    tool: str,
    arguments: Mapping[str, object],
) -> Iterator[Check]:
    """Yield every constraint that a call is held against, and whether it keeps to it."""
    for constraint in constraints:
        for bound_tool in (tool, _ANY_TOOL):
            path = _bound(constraint, _CALL, bound_tool)
            if path is None:
                continue
            # Not every tool has the argument that is bound for all of them.
            optional = bound_tool == _ANY_TOOL or _only_refuses(constraint)
            if (check := _check(constraint, arguments, path, optional=optional)) is not None:
                yield check
            break


def find_checks_of_return(constraints: Iterable[Constraint], tool: str, value: object) -> Iterator[Check]:
    """Yield every constraint that what a tool returned is held against, and whether it keeps to it."""
    for constraint in constraints:
        if (path := _bound(constraint, RETURNED, tool)) is not None:
            check = _check(constraint, value, path, optional=_only_refuses(constraint))
            if check is not None:
                yield check


def find_checks_of_result(constraints: Iterable[Constraint], value: object) -> Iterator[Check]:
    """Yield every constraint that a result is held against, and whether it keeps to it."""
    for constraint in constraints:
        if constraint.binds_to is not None and constraint.binds_to.startswith(_RESULT):
            path = constraint.binds_to.removeprefix(_RESULT)
            if (check := _check(constraint, value, path, optional=False)) is not None:
                yield check


def _bound(constraint: Constraint, to: str, tool: str) -> str | None:
    # Names of tools have dots as well, so where the tool ends is known only by comparing it with the one called.
    bound = constraint.binds_to or ""
    if bound == f"{to}{tool}":
        return ""  # it names no part: nothing can be found there, so it is broken
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
            return value  # not absent: nobody can see whether it is there, so it keeps to nothing
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _shown(found: object) -> str:
    # Not every value can be written out: an integer may have too many digits, a list may be nested too deeply.
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
