"""Errors that a control plane told, as the same classes that a relay in this process raises."""

import json
from functools import cache
from typing import Any

from batonpass import errors
from batonpass.errors import BatonpassError, RemoteAnswerError


@cache
def _classes() -> dict[str, type[BatonpassError]]:
    """Return the class of each code. The more general one has it, where a subclass only inherits its code."""
    found: dict[str, type[BatonpassError]] = {}
    known = [getattr(errors, name) for name in errors.__all__]
    for kind in sorted(known, key=lambda one: len(one.__mro__)):
        if "code" in vars(kind):
            found.setdefault(kind.code, kind)
    return found


def told_error(url: str, status: int, body: bytes) -> BatonpassError:
    """Return the error in an answer: of its own class, with its sentence and its facts."""
    try:
        told = json.loads(body)["error"]
        code, message = str(told["code"]), str(told.get("plain") or told["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return RemoteAnswerError(url, f"it answered {status} without saying why")
    kind = _classes().get(code)
    if kind is None:
        return RemoteAnswerError(url, f"{code}: {message}")
    error = kind.__new__(kind)
    # Not through its own constructor: that would make the sentence anew, from facts that need not all be told.
    Exception.__init__(error, message)
    for name, fact in told.items():
        if name not in {"code", "message", "plain"} and name.isidentifier() and not name.startswith("_"):
            setattr(error, name, _value(fact))
    return error


def _value(fact: Any) -> Any:  # noqa: ANN401 - JSON
    return tuple(map(_value, fact)) if isinstance(fact, list) else fact
