"""Tools: how a function is declared as one."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import sha256
from string import ascii_letters, digits
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, overload

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_code, require_instance, require_texts, shorten
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import PrincipalId, require_agent
from batonpass.model.base.label import Label, SourceType
from batonpass.model.bodies.effect import EffectKind
from batonpass.model.grants.pattern import require_action

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_DECLARED: Final = "__batonpass_tool__"
_IN_NAMES: Final = frozenset(ascii_letters + digits + "._-")
_LONGEST_NAME: Final = 100


class Argument(Struct, frozen=True):
    """The argument that names the target of a call."""

    name: str

    def __call__(self, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it is given
        """Return its value in one call."""
        return arguments.get(self.name)


_MARKED: Final = "_is_coroutine_marker"  # set by `inspect.markcoroutinefunction`


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declaration of a tool. The defaults assume nothing good about it."""

    name: str
    target: Callable[[Mapping[str, Any]], str | None] | None = None  # from the arguments: the object of a call
    action: str | None = None  # as a grant names it; None: read or write
    idempotent: bool = False  # repeating a call with the same key has one effect, so it may be repeated when in doubt
    reversible: bool | None = None  # None: nobody said
    reads: bool = False  # it changes nothing
    external: bool = False  # it reads or changes things that are not ours
    costly: bool = False
    readers: tuple[PrincipalId, ...] | None = None  # who may read its results; None: everybody
    cache_for: timedelta | None = None  # how long a result is given again, in the same session or series
    credential: str | None = None  # the name of the credential that it uses
    effect: EffectKind | None = None  # the kind of thing that a call changes, besides files that it names
    named: str | None = None  # the name in a grant, instead of the tool's, if a call has no target
    shown: str | None = None  # the text that people see of such a call, instead of its arguments
    fills: tuple[str, ...] = ()  # arguments that the tool fills for its caller: passed by reference
    unsound: tuple[str, str] | None = None  # the field, and why no enforced run may make this call
    any_file: bool = False  # it may change any file, so the work tree is compared before and after
    place: str | None = None  # where its relative paths begin; None: the directory of this process
    searches: bool = False  # it reads everything below a directory: the one that it names, else its own
    kin: tuple[str, ...] = ()  # other names under which rules that hold or deny apply to it too
    content: tuple[str, ...] = ()  # arguments that are text to be written, never paths
    scripts: tuple[str, ...] = ()  # arguments that a shell executes
    cost: Callable[[Any], Decimal | int] | None = None
    encode: Callable[[Any], bytes] | None = None
    decode: Callable[[bytes], Any] | None = None

    def __post_init__(self) -> None:
        require_agent("tool", self.name)
        if self.credential is not None:
            require_code("credential", self.credential)
        if self.readers is not None:
            object.__setattr__(self, "readers", tuple(self.readers))
        for name in ("content", "scripts"):
            object.__setattr__(self, name, require_texts(name, getattr(self, name)))
        require_instance("label", self.label, Label)
        if self.action is not None:
            require_action(self.action)
        if self.effect is not None and self.reads:
            raise InvalidValueError("effect", f"{self.name} is declared to change nothing")
        if self.cache_for is None:
            return
        if require_instance("cache_for", self.cache_for, timedelta) <= timedelta(0):
            raise InvalidValueError("cache_for", f"{self.name} would be stale at once")
        if not self.reads:
            raise InvalidValueError(
                "cache_for", f"{self.name} may change something; only tools with reads=True are kept"
            )
        if self.external:
            raise InvalidValueError("cache_for", f"what {self.name} returns came from outside: it is fetched anew")

    @property
    def label(self) -> Label:
        """Return the label of its results."""
        return _label(self.external, self.readers)


@lru_cache(maxsize=256)
def _label(external: bool, readers: tuple[PrincipalId, ...] | None) -> Label:  # noqa: FBT001 - a key
    return Label(SourceType.EXTERNAL if external else SourceType.TOOL_OUTPUT, readers)


@overload
def tool(function: Callable[Arguments, Result], /) -> Callable[Arguments, Result]: ...


@overload
def tool(
    name: str | None = None,
    /,
    *,
    target: str | Callable[[Mapping[str, Any]], str | None] | None = None,
    action: str | None = None,
    idempotent: bool = False,
    reversible: bool | None = None,
    reads: bool = False,
    external: bool = False,
    cache_for: timedelta | str | None = None,
    costly: bool = False,
    credential: str | None = None,
    readers: Iterable[str] | None = None,
    effect: EffectKind | str | None = None,
    content: Iterable[str] = (),
    fills: Iterable[str] = (),
    cost: Callable[[Any], Decimal | int] | None = None,
    encode: Callable[[Any], bytes] | None = None,
    decode: Callable[[bytes], Any] | None = None,
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...


def tool(
    name: str | Callable[..., Any] | None = None,
    /,
    *,
    target: str | Callable[[Mapping[str, Any]], str | None] | None = None,
    action: str | None = None,
    idempotent: bool = False,
    reversible: bool | None = None,
    reads: bool = False,
    external: bool = False,
    cache_for: timedelta | str | None = None,
    costly: bool = False,
    credential: str | None = None,
    readers: Iterable[str] | None = None,
    effect: EffectKind | str | None = None,
    content: Iterable[str] = (),
    fills: Iterable[str] = (),
    cost: Callable[[Any], Decimal | int] | None = None,
    encode: Callable[[Any], bytes] | None = None,
    decode: Callable[[bytes], Any] | None = None,
) -> Any:
    """Declare a function as a tool: its name, its target, and whether it may be repeated or undone.

    `target` is the name of the argument with the object of a call, or a function of the arguments. `action` is the use
    of that object, as a grant names it. The default is `read` or `write`, and `call:NAME` for a tool without a target.

    `reversible=False` says that it cannot be undone; the default says nothing. `external` says that it reads or changes
    things that are not ours: a run that calls it is tainted from then on. `costly` says that it is expensive. A policy
    may hold irreversible, external or costly calls until somebody approves them. `readers` are those who may read its
    results, such as `agent:lead`.

    `credential` names a credential that the relay fetches for the call and never writes down. The tool finds it in
    `current_call().credential`. `effect` is the kind of thing that a call changes: `http`, `database`, `message`,
    `file` or `custom`. A tool that knows more reports it while it runs, with `current_call().effect`. `content` names
    the arguments that are text to be written: they may say anything and are never taken for paths.

    A tool gets copies of the dicts, lists, tuples, sets and bytearrays in its arguments. `fills` names the arguments
    that it fills for its caller. It gets these as they are, and no grant can be based on their values. With
    `cache_for`, the same call in the same session or series gets the recorded result for that long. That is not
    possible for an external tool.
    """

    def declaring(function: Callable[..., Any]) -> Callable[..., Any]:
        given = name if isinstance(name, str) else None
        declared = Declared(
            name=given or name_of(function),
            target=Argument(target) if isinstance(target, str) else target,
            action=action,
            idempotent=idempotent,
            reversible=reversible,
            reads=reads,
            external=external,
            cache_for=None if cache_for is None else as_duration("cache_for", cache_for),
            costly=costly,
            credential=credential,
            readers=None if readers is None else tuple(map(PrincipalId, readers)),
            effect=None if effect is None else as_member("effect", effect, EffectKind),
            content=require_texts("content", content),
            fills=require_texts("fills", fills),
            cost=cost,
            encode=encode,
            decode=decode,
        )
        return declare(function, declared)

    return declaring(name) if callable(name) else declaring


def declare(function: Callable[Arguments, Result], declared: Declared) -> Callable[Arguments, Result]:
    """Attach a declaration to a function and return it. Raises `InvalidValueError` if the function cannot hold it."""
    try:
        setattr(function, _DECLARED, declared)
    except (AttributeError, TypeError):
        raise InvalidValueError("tool", f"{declared.name} cannot be declared; wrap it in a function") from None
    return function


def declared_of(function: Callable[..., Any]) -> Declared:
    """Return the declaration of a function. For a function that is no tool, it holds only the name."""
    if type(function) is FunctionType:
        declared = getattr(function, _DECLARED, None)
        if isinstance(declared, Declared):
            return declared
        return _undeclared(_cleaned(function.__name__) if function.__name__ else name_of(function))
    if not callable(function):
        raise InvalidValueError("function", f"{shorten(function)} cannot be called; pass the function itself")
    return find_declared(function) or _undeclared(name_of(function))


def find_declared(function: Callable[..., Any]) -> Declared | None:
    """Return the declaration of a function; None if nobody declared it as a tool."""
    for known in (function, _inner(function)):
        declared = getattr(known, _DECLARED, None)
        if isinstance(declared, Declared):
            return declared
    return None


@lru_cache(maxsize=1024)
def _undeclared(name: str) -> Declared:
    return Declared(name=name)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name under which a function is recorded."""
    inner = _inner(function)
    given = str(getattr(inner, "__name__", None) or type(inner).__name__)
    return _cleaned(given)


@lru_cache(maxsize=1024)
def _cleaned(given: str) -> str:
    cleaned = "".join(character if character in _IN_NAMES else "_" for character in given).strip("._-")
    # A name that had to be changed gets a piece of its digest, so that two such tools never share a name.
    shown = cleaned[:_LONGEST_NAME] or "tool"
    if shown == given.strip("._-<>"):
        return shown
    return f"{shown}-{sha256(given.encode(errors='surrogatepass')).hexdigest()[:6]}"


def _inner(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a function returns something to await."""
    if type(function) is FunctionType:
        # Most functions say so in their flags. Only a function that was marked by hand needs a closer look.
        if not function.__code__.co_flags & inspect.CO_COROUTINE and _MARKED not in function.__dict__:
            return False
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - not whether, but what it is
