"""A function as a tool: its name, what it does, and which argument is its target."""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import CoroutineType, MappingProxyType, MethodType
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct, json
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.wire.canonical import encode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_PATHS: Final = frozenset({"path", "file", "filename", "file_path", "filepath", "file_name"})


class Tool(Struct, frozen=True, kw_only=True):
    """What a call of a function needs. The defaults assume nothing good about it."""

    name: str
    action: str
    target: str | None = None  # the argument that names it; None: the name of the tool
    position: int = -1
    idempotent: bool = False  # made again without asking when in doubt

    def target_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return what a call is about. Raises `InvalidValueError` if the argument is missing."""
        if self.target is None:
            return self.name
        if self.target in kwargs:
            return str(kwargs[self.target])
        if self.position < len(args):
            return str(args[self.position])
        raise InvalidValueError(f"{self.name} needs {self.target}=, which names what it works on")


class ToolArguments(TypedDict, total=False):
    """What `tool` may be told of a function."""

    action: str | None
    target: str | None
    reads: bool
    idempotent: bool


class Declared(Struct, frozen=True, kw_only=True):
    """What a tool does. The fields are those of `tool`."""

    action: str | None = None
    target: str | None = None
    reads: bool = False
    idempotent: bool = False

    def of(self, function: Callable[..., Any], name: str | None = None) -> Tool:
        """Return what a call of a function needs. Raises `InvalidValueError` if it has no such argument."""
        try:
            signature = inspect.signature(function).parameters
        except (TypeError, ValueError):  # of a builtin nobody knows
            signature = MappingProxyType({})
        # An argument that may be left out is not what every call is about.
        optional = {each.name for each in signature.values() if each.default is not each.empty}
        own = str(name or getattr(function, "__name__", type(function).__name__))
        return self.named(own, list(signature), optional)

    def named(self, name: str, parameters: list[str], optional: Collection[str] = ()) -> Tool:
        """Return what a call needs of a tool that is no function here: of its name and of those of its arguments."""
        target = self.target
        if target is None:
            target = next((each for each in parameters if each in _PATHS and each not in optional), None)
        elif target not in parameters:
            raise InvalidValueError(f"{name} has no parameter {target!r}; it has {', '.join(parameters)}")
        use = "read" if self.reads else "call" if target is None else "write"
        return Tool(
            name=name,
            action=self.action or use,
            target=target,
            position=-1 if target is None else parameters.index(target),
            idempotent=self.idempotent or self.reads,
        )


# Inspecting a signature costs more than everything else that a call does here.
_undeclared: Final = lru_cache(maxsize=512)(Declared().of)


class CurrentCall(Struct, frozen=True, kw_only=True):
    """The call that this code runs for: an outside system may use its key to do the same thing once."""

    run: str
    call: str
    key: str
    attempt: int


CURRENT_CALL: Final[ContextVar[CurrentCall | None]] = ContextVar("batonpass_call", default=None)


@overload
def tool(name: F, /) -> F: ...


@overload
def tool(name: str | None = None, /, **does: Unpack[ToolArguments]) -> Callable[[F], F]: ...


def tool(
    name: Any = None,
    /,
    *,
    action: str | None = None,
    target: str | None = None,
    reads: bool = False,
    idempotent: bool = False,
) -> Any:
    """Declare what a function does: `@tool(target="path")` needs the permission `write:<path>`, or `read:` if it reads.

    `target` is the argument that names what a call works on; the default is one that is called `path`, `file` or so,
    and without one a call needs `call:<name>`. `action` is another word for a grant. A tool that only reads, or is
    idempotent by the key of its call, is made again without asking when it is in doubt.
    """
    does = Declared(action=action, target=target, reads=reads, idempotent=idempotent)

    def declaring(function: F) -> F:
        declared = does.of(function, None if callable(name) else name)
        try:
            function.__batonpass_tool__ = declared  # type: ignore[attr-defined]
        except (AttributeError, TypeError):
            raise InvalidValueError(f"{declared.name} cannot hold a declaration: wrap it in a function") from None
        return function

    return declaring(name) if callable(name) else declaring


def tool_of(function: Callable[..., Any]) -> Tool:
    """Return what a call of a function needs: as it was declared, or what its name and arguments say."""
    declared: Tool | None = getattr(function, "__batonpass_tool__", None)
    if declared is None:
        return _undeclared(function)
    if isinstance(function, MethodType) and declared.position > 0:
        return replace(declared, position=declared.position - 1)  # it was declared with its `self`
    return declared


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
    """Return what a tool returns. Raises `InvalidValueError` for a coroutine, which nobody here can await."""
    result = function(*args, **kwargs)
    if isinstance(result, CoroutineType):
        result.close()
        raise InvalidValueError(f"{function!r} has to be awaited: call it with a run of AsyncRelay")
    return result
