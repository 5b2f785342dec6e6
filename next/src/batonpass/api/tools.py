"""A function as a tool: its name, what it does, and which argument is its target."""

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from functools import lru_cache
from inspect import Parameter, Signature
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct, json
from msgspec.structs import replace

from batonpass.errors import CallError, InvalidValueError
from batonpass.wire.canonical import encode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_PATHS: Final = frozenset({"path", "file", "filename", "file_path", "filepath", "file_name"})
_COLLECTING: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

# Of these very types a text is the one that the tool works with. A subclass may have two: one that it says when it is
# judged, and another that it is.
_PATH_TYPES: Final = frozenset({PosixPath, WindowsPath, PurePosixPath, PureWindowsPath, os.DirEntry})
_PRINTED: Final = frozenset({int, bool, type(None)})
_PRINTED_IF_OBSERVED: Final = frozenset({float, bytes, list, tuple, dict})


class Tool(Struct, frozen=True, kw_only=True):
    """What a call of a function needs. The defaults assume nothing good about it."""

    name: str
    action: str
    target: str | None = None  # the argument that names it; None: the name of the tool
    position: int = -1  # of that argument; -1: it is given by name only
    has_name: bool = True  # False: it is given by position only
    idempotent: bool = False  # made again without asking when in doubt
    function: object = None  # which was declared

    def target_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_enforced: bool) -> str:
        """Return what a call is about: the value that the function is given, as Python binds it.

        Raises `InvalidValueError` if it is missing, and if it is enforced and may be another when it is used.
        """
        if self.target is not None and 0 <= self.position < len(args):
            return self._text_of(args[self.position], is_enforced=is_enforced)
        return self.target_in(kwargs if self.has_name else {}, is_enforced=is_enforced)

    def target_in(self, given: Mapping[str, Any], *, is_enforced: bool) -> str:
        """Return the same of arguments by the names of their parameters."""
        if self.target is None:
            return self.name
        if self.target not in given:
            raise InvalidValueError(f"{self.name} needs {self.target}=, which names what it works on")
        return self._text_of(given[self.target], is_enforced=is_enforced)

    def _text_of(self, value: Any, *, is_enforced: bool) -> str:  # noqa: ANN401 - any argument
        kind = type(value)
        if kind is str:
            text: str = value
            return text
        if kind in _PATH_TYPES:
            return str(os.fspath(value))
        if kind in _PRINTED or (kind in _PRINTED_IF_OBSERVED and not is_enforced):
            return str(value)
        if not is_enforced:
            return self.name
        raise InvalidValueError(f"{self.target}= of {self.name} is judged as a str or a Path, and this is {kind!r}")


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
            parameters = signature_of(function).parameters
        except (TypeError, ValueError):  # of a builtin nobody knows
            parameters = Signature().parameters
        single = [each.name for each in parameters.values() if each.kind not in _COLLECTING]
        # An argument that may be left out is not what every call is about.
        optional = {each.name for each in parameters.values() if each.default is not each.empty}
        own = str(name or getattr(function, "__name__", type(function).__name__))
        tool = replace(self.named(own, single, optional), function=function)
        if tool.target is None:
            return tool
        kind = parameters[tool.target].kind
        position = -1 if kind is Parameter.KEYWORD_ONLY else single.index(tool.target)
        return replace(tool, position=position, has_name=kind is not Parameter.POSITIONAL_ONLY)

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
            idempotent=self.idempotent or self.reads,
        )


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return what a function is given: its own parameters, or those of the function that it passes all of them on to.

    Python's own answer is always that of the wrapped one, which says nothing about a wrapper that has others.
    """
    if isinstance(function, MethodType):
        own, *others = signature_of(function.__func__).parameters.values()
        return Signature([own, *others] if own.kind in _COLLECTING else others)
    if _passes_on(function):
        inner: Callable[..., Any] = function.__dict__["__wrapped__"]
        return signature_of(inner)
    return inspect.signature(function, follow_wrapped=False)


@lru_cache(maxsize=512)
def _passes_on(function: Any) -> bool:  # noqa: ANN401 - any callable
    """Return whether a function is a wrapper that has no parameters of its own."""
    if not (isinstance(function, FunctionType) and hasattr(function, "__wrapped__")):
        return False
    own = inspect.signature(function, follow_wrapped=False).parameters.values()
    return tuple(each.kind for each in own) == _COLLECTING


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
    """Return what a call of a function needs: as it was declared, or what its name and arguments say.

    A declaration is that of one function, and of wrappers that pass everything on to it. What carries a copy and has
    arguments of its own (a wrapper, an object of a declared class) was not declared.
    """
    declared: Tool | None = getattr(function, "__batonpass_tool__", None)
    if declared is None:
        return _undeclared(function)
    inner: Any = function.__func__ if isinstance(function, MethodType) else function
    while inner is not declared.function:
        if not _passes_on(inner):
            return _undeclared(function)
        inner = inner.__wrapped__
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
    return require_finished(function, result)


def require_finished(function: Callable[..., Any], result: T) -> T:
    """Return a result. Raises `CallError` for a generator: its work would begin after it was recorded as completed."""
    if not isinstance(result, GeneratorType | AsyncGeneratorType):
        return result
    if isinstance(result, GeneratorType):
        result.close()
    detail = f"{function!r} works in steps, and a call is one: let it return what it yields as a list"
    raise CallError(detail, code="call.guard_failed")
