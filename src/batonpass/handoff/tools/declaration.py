"""Tools: functions that a run calls, and what is declared about them."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from os import PathLike
from string import ascii_letters, digits
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

from msgspec import Struct

from batonpass.errors import BatonpassError, InvalidValueError
from batonpass.guard.policy.gates import GateDecision
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.arguments import PATHS, SCALARS, copy_arguments, is_plain, type_name, veiled
from batonpass.handoff.tools.json_values import FLAT, describe_call, is_as_described, plain, readable
from batonpass.model.base.checks import as_member, require_code, require_instance, require_texts
from batonpass.model.base.ids import PrincipalId, require_agent
from batonpass.model.base.label import Label, SourceType
from batonpass.model.bodies.effect import EffectKind
from batonpass.model.grants.call import Opaque
from batonpass.model.grants.pattern import require_action

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_DECLARED: Final = "__batonpass_tool__"
_IN_NAMES: Final = frozenset(ascii_letters + digits + "._-")
_LONGEST_NAME: Final = 100
_PATH: Final = "path"

PLACE: Final = "cwd"  # the argument of a command that says where it runs
UNSOUND: Final = frozenset({"target", "env"})  # the fields for which `require_sound` refuses a call


class Argument(Struct, frozen=True):
    """The argument that says what a call acts on."""

    name: str

    def __call__(self, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it is given
        """Return what it says in one call."""
        return arguments.get(self.name)


_TAKES_MORE: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_MARKED: Final = "_is_coroutine_marker"  # by `inspect.markcoroutinefunction`
_SIGNATURES: Final[WeakKeyDictionary[FunctionType, inspect.Signature]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is declared about a tool; by default nothing good is assumed of it."""

    name: str
    target: Callable[[Mapping[str, Any]], str | None] | None = None  # what a call acts on, from its arguments
    action: str | None = None  # what it does to that, as a grant names it; None: read or write
    idempotent: bool = False  # the same call key twice has one effect: it may be repeated when in doubt
    reversible: bool | None = None  # None: nobody said
    reads: bool = False  # it changes nothing
    external: bool = False  # what it reads or changes is not ours
    costly: bool = False
    readers: tuple[PrincipalId, ...] | None = None  # who may read what it returns; None: everybody
    cache_for: timedelta | None = None  # for so long its result is given again, in the same session or series
    credential: str | None = None  # the name of the one that it acts with
    effect: EffectKind | None = None  # what kind of thing a call changes, besides files that it names
    named: str | None = None  # what a grant names of a call that names nothing it changes, instead of the tool
    shown: str | None = None  # what people are told of such a call, instead of its arguments
    fills: tuple[str, ...] = ()  # arguments that it fills for its caller: they pass by reference
    unsound: tuple[str, str] | None = None  # the field, and why no enforced run makes this call
    any_file: bool = False  # it may change any file: the work tree is looked at before and after
    place: str | None = None  # where relative paths among its arguments begin; None: where this process stands
    searches: bool = False  # it reads what lies below a directory: the one that it names, else where it is made
    kin: tuple[str, ...] = ()  # by which other names rules that hold or deny mean it too
    content: tuple[str, ...] = ()  # arguments that are texts to be written, and no paths, whatever they say
    scripts: tuple[str, ...] = ()  # arguments that a shell is told
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
        """Return the label of what it returns."""
        return _label(self.external, self.readers)


@lru_cache(maxsize=256)
def _label(external: bool, readers: tuple[PrincipalId, ...] | None) -> Label:  # noqa: FBT001 - a key
    return Label(SourceType.EXTERNAL if external else SourceType.TOOL_OUTPUT, readers)


@dataclass(frozen=True)
class ToolCall(Generic[Result]):
    """A call before it is made: which tool, with which arguments.

    These are copied at once, those included that a partial function holds, and looked at once. What is checked, what is
    recorded, what is watched and what the tool gets are the same, whatever becomes of the caller's objects meanwhile.
    So whoever makes the call does it with `make`, and with nothing that it was planned from.
    """

    declared: Declared
    function: Callable[..., Result]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = field(default=(), kw_only=True)  # what is odd about how it came; its request tells them

    def __post_init__(self) -> None:
        function, args, kwargs = self.function, self.args, dict(self.kwargs)
        while isinstance(function, partial) and type(function).__call__ is partial.__call__:
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        object.__setattr__(self, "function", function)
        filled = self._filled(args, kwargs) if self.declared.fills else ()
        args, kwargs = copy_arguments(args, kwargs, filled=filled)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "kwargs", kwargs)
        if FLAT.issuperset(map(type, args)) and FLAT.issuperset(map(type, kwargs.values())):
            self._take_flat()

    def _take_flat(self) -> None:
        """Take texts, numbers, truths and nothing as they are: all that is asked of them below is answered in one pass.

        Nobody's code runs when such values are looked at, and there is nothing in them that may change or is opaque.
        Where a default, or what has to be spelled out, would come in, the properties find out by themselves.
        """
        names = _plain_names(self.function)
        if names is None or len(self.args) + len(self.kwargs) != len(names):
            return
        named: dict[str, Any] = dict(zip(names, self.args, strict=False))
        if self.kwargs:
            named |= {name: self.kwargs[name] for name in names[len(self.args) :] if name in self.kwargs}
        if len(named) != len(names):
            return
        for value in named.values():
            if not is_as_described(value):
                return
        known: dict[str, Any] = {"named": named, "bound": named, "judged": named, "_described": (named, None)}
        target = self.declared.target
        said = named.get(_PATH if target is None else target.name if type(target) is Argument else "")
        if target is None:
            known |= {"_aimed": (None, None), "target": None, "path": said if type(said) is str else None}
        elif type(said) is str:
            known |= {"_aimed": (said, None), "target": said, "path": said}
        self.__dict__.update(known)

    def make(self) -> Result:
        """Call the tool, with what was judged."""
        return self.function(*self.args, **self.kwargs)

    @cached_property
    def named(self) -> Mapping[str, Any]:
        """Return the arguments by name, as the tool gets them."""
        return self._bind(self.args, self.kwargs)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        plain_names = _plain_names(self.function)
        if plain_names is not None and len(args) + len(kwargs) == len(plain_names):
            # All are given, and each has one place. Working that out for any function takes many times as long.
            named = dict(zip(plain_names, args, strict=False))
            named.update((name, kwargs[name]) for name in plain_names[len(args) :] if name in kwargs)
            if len(named) == len(plain_names):
                return named
        try:
            bound = _signature(self.function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            # A built-in without a signature, or arguments that do not fit: the call itself will say so.
            return {"args": list(args), **kwargs}
        bound.apply_defaults()
        return bound.arguments

    def _filled(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what the tool fills for its caller, which passes by reference."""
        if not self.declared.fills:
            return ()
        named = self._bind(args, kwargs)
        return tuple(named[name] for name in self.declared.fills if name in named)

    @cached_property
    def described(self) -> bytes:
        """Return tool and arguments in one form: what is recorded of the call, and compared with others."""
        return describe_call(self.declared.name, self.arguments)

    @cached_property
    def bound(self) -> Mapping[str, Any]:
        """Return the arguments by name, as conditions and constraints see them: not into what is `Opaque`."""
        if SCALARS.issuperset(map(type, self.named.values())):
            return self.named
        filled = self._filled(self.args, self.kwargs)
        return {name: veiled(value, filled=filled) for name, value in self.named.items()}

    @cached_property
    def _described(self) -> tuple[dict[str, Any], Exception | None]:
        """Return the arguments as JSON can hold them, and what the first raised that did not want to be looked at."""
        described: dict[str, Any] = {}
        fault: Exception | None = None
        for name, value in self.named.items():
            try:
                described[name] = plain(value)
            except BatonpassError:
                raise
            except Exception as error:  # noqa: BLE001 - arguments are somebody's objects, and may raise anything
                fault = fault or error
                shown = f"<{type_name(value)} that cannot be shown: {type(error).__name__}>"
                described[name] = {"shown": shown, "type": type_name(value)}
        return described, fault

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments by name, as JSON can hold them: what is recorded."""
        return self._described[0]

    @cached_property
    def judged(self) -> Mapping[str, Any]:
        """Return the arguments by name, as JSON can hold them, with an `Opaque` for what may change: what is judged."""
        if self.bound is self.named or all(value is self.named[name] for name, value in self.bound.items()):
            return self.arguments
        return {name: plain(value) for name, value in self.bound.items()}

    @cached_property
    def _aimed(self) -> tuple[Any, Exception | None]:
        """Return what the tool says that the call acts on, and what went wrong when it was asked."""
        if self.declared.target is None:
            return None, None
        try:
            found = self.declared.target(dict(self.arguments))
            # Spelled once: it may be an object, and have another spelling the next time.
            spelled = found if is_plain(found) else plain(found)
        except Exception as error:  # noqa: BLE001 - the tool's own code, on whatever it was given
            return None, error
        seen = veiled(found)
        return spelled, InvalidValueError("target", _unnamed(None, seen)) if type(seen) is Opaque else None

    @property
    def aim(self) -> Any:  # noqa: ANN401 - whatever the tool says
        """Return what the call acts on as the tool says it: a text, or something that has none."""
        return self._aimed[0]

    @cached_property
    def target(self) -> str | None:
        """Return what the call acts on, if the tool says so."""
        if isinstance(self.aim, list | dict):
            return json.dumps(self.aim, ensure_ascii=False)  # no name of anything; secrets in it are found in JSON
        return None if self.aim is None else readable(str(self.aim))

    def require_sound(self) -> None:
        """Refuse a call that nobody can judge as it stands.

        Raises `InvalidValueError`, whose field says what is wrong (`target`, or what is `unsound` in the declaration),
        and whatever an argument raised that did not want to be looked at.
        """
        fault = self._described[1] or self._aimed[1]
        if fault is not None:
            raise fault
        if self.declared.unsound is not None:
            raise InvalidValueError(*self.declared.unsound)
        self.require_target()

    def require_target(self) -> None:
        """Refuse a call that does not name what its tool acts on. Raises `InvalidValueError`.

        A list, bytes or an object can be spelled too, and no file that they mean is called so. What opens files takes a
        number for one that is open already; to an action of its own it may be the number of an order.
        """
        if self.declared.target is None:
            given = self.bound.get(_PATH)
            if given == "" or (type(given) is Opaque and self.path is not None):
                raise InvalidValueError("target", _unnamed(_PATH, given))
            return
        found, name = self.aim, self.declared.target.name if isinstance(self.declared.target, Argument) else None
        if name is not None and type(self.bound.get(name)) is Opaque:
            raise InvalidValueError("target", _unnamed(name, self.bound[name]))
        if name is None and self.judged is not self.arguments:
            self._require_same_target()
        if found is None or found == "":
            raise InvalidValueError("target", _unnamed(name, found))
        if type(found) is str or type(found) in PATHS:
            return
        if self.action in {READ, WRITE} or type(found) is not int:
            raise InvalidValueError("target", f"is no text that names one thing, but {type(found).__name__}")

    def _require_same_target(self) -> None:
        """Refuse a target that a function made of something opaque: without a look into it, it says something else."""
        try:
            same = self.declared.target is not None and self.declared.target(dict(self.judged)) == self.aim
        except Exception:  # noqa: BLE001 - it wanted something that is not to be seen
            same = False
        if not same:
            raise InvalidValueError(
                "target",
                "is made of an object that may say something else when the tool asks; pass texts, numbers or lists",
            )

    @cached_property
    def path(self) -> str | None:
        """Return what the call acts on: what the tool says, else its argument called `path`."""
        if self.declared.target is not None:
            return self.target
        given = self.named.get(_PATH)
        described = self.arguments.get(_PATH)  # a path is asked for its spelling once, and has it there
        return described if isinstance(given, str | PathLike) and isinstance(described, str) else None

    @property
    def action(self) -> str:
        """Return what the call does, as a grant names it: as declared, else read or write; `call` of what is named."""
        if self.declared.action is not None:
            return self.declared.action
        if self.path is None:
            return CALL
        return READ if self.declared.reads else WRITE

    @property
    def resource(self) -> str:
        """Return what it does that to, as a grant names it; of a tool that acts on nothing it names, the tool."""
        return self.path or self.declared.named or self.declared.name

    @property
    def acts_on_path(self) -> bool:
        """Return whether the resource is what its arguments name, and not the tool itself."""
        return self.path is not None

    @property
    def seen_elsewhere(self) -> bool:
        """Return whether its door looks itself at the files that it changes."""
        return False

    def find_refusals(self) -> Iterable[GateDecision]:
        """Return what rules that only its door knows say against it."""
        return ()

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return the arguments among which a path to what is protected may stand, as they are given to the tool."""
        return self.named

    @property
    def follows_paths(self) -> bool:
        """Return whether paths among its arguments mean files here, and are judged by where they lead."""
        return True


def _plain_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the parameters of a function that takes each of them by place or by name; None of one that is not so."""
    if type(function) is not FunctionType or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return None
    code = function.__code__
    if code.co_flags & _TAKES_MORE or code.co_posonlyargcount or code.co_kwonlyargcount:
        return None
    return code.co_varnames[: code.co_argcount]


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return what a function takes; worked out once for each function that is defined as one."""
    if not isinstance(function, FunctionType):
        return inspect.signature(function)
    known = _SIGNATURES.get(function)
    if known is None:
        known = _SIGNATURES[function] = inspect.signature(function)
    return known


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
    cache_for: timedelta | None = None,
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
    cache_for: timedelta | None = None,
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
    """Declare a function as a tool: its name, what it changes, and whether it may be repeated or undone.

    `target` is the name of the argument that says what is acted on, or a function of the arguments; `action` says what
    is done to it, as a grant names it: without it `read` or `write`, and `call:NAME` of a tool that names nothing.
    `reversible=False` says that it cannot be undone; without it, nobody said. `external` says that what it reads or
    changes is not ours, `costly` that it is dear: a policy may want somebody to let such a call be made. A run that
    calls what is external is tainted from then on. `readers` may read what it returns, such as `agent:lead`.
    `credential` is the name of one that the relay fetches for the call and nobody writes down: the tool finds it in
    `current_call().credential`. `effect` says what kind of thing a call changes: `http`, `database`, `message`, `file`
    or `custom`; a tool that knows more says it while it runs, with `current_call().effect`. `content` names the
    arguments that are texts to be written: they may say anything, and are never taken for paths.
    A tool gets copies of the dicts, lists, tuples, sets and bytearrays that it is called with. `fills` names arguments
    that it fills for its caller: these it gets as they are, and nothing can be granted by what is in them.
    With `cache_for`, the same call in the same session or series gets the recorded result for so long; not if it is
    external.
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
            cache_for=cache_for,
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
    """Return a function of which something is declared. Raises `InvalidValueError` if it cannot hold that."""
    try:
        setattr(function, _DECLARED, declared)
    except (AttributeError, TypeError):
        raise InvalidValueError("tool", f"{declared.name} cannot be declared; wrap it in a function") from None
    return function


def declared_of(function: Callable[..., Any]) -> Declared:
    """Return what is declared about a function; of one that is no tool, only its name."""
    if type(function) is FunctionType:
        declared = getattr(function, _DECLARED, None)
        if isinstance(declared, Declared):
            return declared
        return _undeclared(_cleaned(function.__name__) if function.__name__ else name_of(function))
    for known in (function, _inner(function)):
        declared = getattr(known, _DECLARED, None)
        if isinstance(declared, Declared):
            return declared
    return _undeclared(name_of(function))


@lru_cache(maxsize=1024)
def _undeclared(name: str) -> Declared:
    return Declared(name=name)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name by which a function is recorded."""
    inner = _inner(function)
    given = str(getattr(inner, "__name__", None) or type(inner).__name__)
    return _cleaned(given)


@lru_cache(maxsize=1024)
def _cleaned(given: str) -> str:
    cleaned = "".join(character if character in _IN_NAMES else "_" for character in given).strip("._-")
    # What does not stand there as it is called ends in a piece of its digest: two such tools are not one.
    shown = cleaned[:_LONGEST_NAME] or "tool"
    if shown == given.strip("._-<>"):
        return shown
    return f"{shown}-{sha256(given.encode(errors='surrogatepass')).hexdigest()[:6]}"


def _inner(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a function gives something to await."""
    if type(function) is FunctionType:
        # Most functions say so themselves; only one that is marked as what it is not has to be looked at.
        if not function.__code__.co_flags & inspect.CO_COROUTINE and _MARKED not in function.__dict__:
            return False
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - not whether, but what it is


def _unnamed(name: str | None, given: object) -> str:
    """Return why something names nothing that a call could be held to."""
    which = "what the tool acts on" if name is None else f"the argument {name}"
    if type(given) is Opaque:
        return f"{which} is {given!r} when the tool asks; pass a text, or a path of pathlib"
    if given is None:
        return f"{which} is not given; give it, by a parameter of its own"
    return f"{which} is empty; name one thing"
