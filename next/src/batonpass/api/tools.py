"""A function as a tool: its name, what it does, and which argument is its target."""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from msgspec import Struct, json

from batonpass.errors import InvalidValueError
from batonpass.wire.canonical import encode

P = ParamSpec("P")
T = TypeVar("T")


class Tool(Struct, Generic[P, T], frozen=True, kw_only=True):
    """A function with what a call of it needs. Called directly, it makes no record."""

    function: Callable[P, T]
    name: str
    action: str = "call"
    target: str | None = None  # the argument that names it; None: the name of the tool
    position: int = -1
    idempotent: bool = False  # repeated without asking when in doubt

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function, without any record."""
        return self.function(*args, **kwargs)

    def target_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return what a call is about. Raises `InvalidValueError` if the argument is missing."""
        if self.target is None:
            return self.name
        if self.target in kwargs:
            return str(kwargs[self.target])
        if self.position < len(args):
            return str(args[self.position])
        raise InvalidValueError(f"{self.name} needs {self.target}=, which names what it works on")


class CurrentCall(Struct, frozen=True, kw_only=True):
    """The call that this code runs for: an outside system may use its key to do the same thing once."""

    run: str
    call: str
    key: str
    attempt: int


CURRENT_CALL: Final[ContextVar[CurrentCall | None]] = ContextVar("batonpass_call", default=None)


@overload
def tool(name: Callable[P, T], /) -> Tool[P, T]: ...


@overload
def tool(
    name: str | None = None,
    /,
    *,
    action: str | None = None,
    target: str | None = None,
    reads: bool = False,
    idempotent: bool = False,
) -> Callable[[Callable[P, T]], Tool[P, T]]: ...


def tool(
    name: Any = None,
    /,
    *,
    action: str | None = None,
    target: str | None = None,
    reads: bool = False,
    idempotent: bool = False,
) -> Any:
    """Declare what a function does: `@tool(action="write", target="path")` needs the permission `write:<path>`.

    A tool that only reads, or is idempotent by the key of its call, is made again without asking when it is in doubt.
    """
    if callable(name):
        return declare(name)
    return partial(declare, name=name, action=action, target=target, reads=reads, idempotent=idempotent)


def declare(
    function: Callable[P, T],
    *,
    name: str | None = None,
    action: str | None = None,
    target: str | None = None,
    reads: bool = False,
    idempotent: bool = False,
) -> Tool[P, T]:
    """Return a function as a tool; a tool as it is."""
    if isinstance(function, Tool):
        return function
    own = str(name or getattr(function, "__name__", type(function).__name__))
    position = -1
    if target is not None:
        # Once, when it is declared: inspecting a signature costs more than everything that a call does here.
        parameters = list(inspect.signature(function).parameters)
        if target not in parameters:
            raise InvalidValueError(f"{own} has no parameter {target!r}; it has {', '.join(parameters)}")
        position = parameters.index(target)
    return Tool(
        function=function,
        name=own,
        action=action or ("read" if reads else "call"),
        target=target,
        position=position,
        idempotent=idempotent or reads,
    )


def encode_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Return arguments as they are digested and recorded. Raises `InvalidValueError` if JSON cannot hold them."""
    try:
        return encode((args, kwargs))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"arguments of a recorded call are JSON values: {error}") from None


def encode_result(result: object) -> bytes | None:
    """Return a result as it may be given again; None if it does not come back from JSON as it was."""
    try:
        data = encode(result)
        return data if _is_exact(json.decode(data), result) else None
    except Exception:  # noqa: BLE001 - whatever it is, the call was made, and that is its outcome
        return None


def _is_exact(copy: object, original: object) -> bool:
    """Return whether two values are equal, type by type: a tuple, or 1.0 for 1, would come back as another."""
    if type(copy) is not type(original):
        return False
    if isinstance(original, list) and isinstance(copy, list):
        return len(copy) == len(original) and all(map(_is_exact, copy, original))
    if isinstance(original, dict) and isinstance(copy, dict):
        return copy.keys() == original.keys() and all(_is_exact(copy[key], original[key]) for key in original)
    return copy == original


def call_function(function: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> T:
    """Return what a tool returns."""
    return function(*args, **kwargs)
