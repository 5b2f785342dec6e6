"""Errors and requests as JSON, there and back: what every entry point that speaks JSON has in common.

An error has the members of RFC 9457, without `status`, which only HTTP adds. The other end gets the same class with the
same code and the same sentence.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct, ValidationError, json

from batonpass.api.acts import ACTS, Act
from batonpass.errors import BatonpassError, InvalidValueError, error_classes

Q = TypeVar("Q", bound=Struct)
_TYPE: Final = "urn:batonpass:error:"
_log: Final = logging.getLogger("batonpass")


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error, as every entry point writes it."""

    type: str
    title: str  # the same for each error of its class
    detail: str  # what happened here, and what to do
    code: str
    facts: Mapping[str, Any] = {}


def problem_of(error: Exception) -> Problem:
    """Return an error as JSON has it. Of a mistake of ours a caller learns only that there was one."""
    if not isinstance(error, BatonpassError):
        _log.error("an act failed", exc_info=error)
        error = BatonpassError("something went wrong here: the log of this process says what")
    title = (type(error).__doc__ or type(error).__name__).partition("\n")[0]
    return Problem(type=_TYPE + error.code, title=title, detail=str(error), code=error.code, facts=error.facts)


def error_of(problem: Problem) -> BatonpassError:
    """Return the error that was raised at the other end. One of a later version keeps its code and its sentence."""
    kind = error_classes().get(problem.code, BatonpassError)
    return kind(problem.detail, code=problem.code, facts=problem.facts)


def find_act(name: str) -> Act[Any, Any]:
    """Return an act by its name. Raises `InvalidValueError`."""
    try:
        return ACTS[name]
    except KeyError:
        raise InvalidValueError(f"there is no act {name!r}: there are {', '.join(sorted(ACTS))}") from None


def read_json(kind: type[Q], data: bytes | Raw, *, what: str) -> Q:
    """Return a struct from JSON. Raises `InvalidValueError`, which names the field."""
    try:
        return json.decode(data, type=kind)
    except ValidationError as error:
        raise InvalidValueError(f"{what}: {error}") from None
    except RecursionError:
        raise InvalidValueError(f"{what}: nested too deeply") from None
    except ValueError as error:  # also what is no UTF-8
        raise InvalidValueError(f"{what}: not JSON: {error}") from None
