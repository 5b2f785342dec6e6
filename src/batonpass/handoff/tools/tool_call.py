"""A call of a tool before it is made: its arguments, its target and how it is described."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike
from types import FunctionType
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from batonpass.errors import BatonpassError, InvalidValueError
from batonpass.guard.policy.gates import DoorFacts, GateDecision
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.arguments import PATHS, SCALARS, copy_arguments, is_plain, type_name, veiled
from batonpass.handoff.tools.declaration import Argument, Declared
from batonpass.handoff.tools.json_values import FLAT, describe_call, is_as_described, plain, readable
from batonpass.model.base.kept_property import kept_property
from batonpass.model.grants.call import Opaque

Result = TypeVar("Result")

_PATH: Final = "path"
PLACE: Final = "cwd"  # the argument of a command with its directory
UNSOUND: Final = frozenset({"target", "env"})  # the fields for which `require_sound` refuses a call
_TAKES_MORE: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_SIGNATURES: Final[WeakKeyDictionary[FunctionType, inspect.Signature]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ToolCall(Generic[Result]):
    """A call before it is made: the tool and its arguments.

    The arguments are copied and read once, including those that a partial function holds. So the checks, the receipt
    and the tool all see the same values, whatever the caller does to its own objects meanwhile. Make the call with
    `make` only, never with the objects from which it was planned.
    """

    declared: Declared
    function: Callable[..., Result]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = field(default=(), kw_only=True)  # oddities of how it came; recorded with its request

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
        """Fill all properties in one pass if the arguments are only texts, numbers, booleans and None.

        Reading such values runs nobody's code, and nothing in them can change or is opaque. If defaults are missing, or
        a value needs a description of its own, this does nothing, and the properties work it out themselves.
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
        """Call the tool, with the arguments that were checked."""
        return self.function(*self.args, **self.kwargs)

    @cached_property
    def named(self) -> Mapping[str, Any]:
        """Return the arguments by name, as the tool gets them."""
        return self._bind(self.args, self.kwargs)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        plain_names = _plain_names(self.function)
        if plain_names is not None and len(args) + len(kwargs) == len(plain_names):
            # All arguments are given, and each has one place. Binding through the signature takes many times as long.
            named = dict(zip(plain_names, args, strict=False))
            named.update((name, kwargs[name]) for name in plain_names[len(args) :] if name in kwargs)
            if len(named) == len(plain_names):
                return named
        try:
            bound = _signature(self.function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            # A built-in without a signature, or arguments that do not fit: the call itself will report it.
            return {"args": list(args), **kwargs}
        bound.apply_defaults()
        return bound.arguments

    def _filled(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments that the tool fills for its caller. They pass by reference."""
        if not self.declared.fills:
            return ()
        named = self._bind(args, kwargs)
        return tuple(named[name] for name in self.declared.fills if name in named)

    @kept_property
    def described(self) -> bytes:
        """Return tool and arguments in one form, to be recorded and to be compared with other calls."""
        return describe_call(self.declared.name, self.arguments)

    @cached_property
    def bound(self) -> Mapping[str, Any]:
        """Return the arguments by name, for conditions and constraints. Values that may change are `Opaque`."""
        if SCALARS.issuperset(map(type, self.named.values())):
            return self.named
        filled = self._filled(self.args, self.kwargs)
        return {name: veiled(value, filled=filled) for name, value in self.named.items()}

    @cached_property
    def _described(self) -> tuple[dict[str, Any], Exception | None]:
        """Return the arguments as JSON, and the first error that an argument raised when it was read."""
        described: dict[str, Any] = {}
        fault: Exception | None = None
        for name, value in self.named.items():
            try:
                described[name] = plain(value)
            except BatonpassError:
                raise
            except Exception as error:  # noqa: BLE001 - arguments are foreign objects and may raise anything
                fault = fault or error
                shown = f"<{type_name(value)} that cannot be shown: {type(error).__name__}>"
                described[name] = {"shown": shown, "type": type_name(value)}
        return described, fault

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments by name as JSON, as they are recorded."""
        return self._described[0]

    @cached_property
    def judged(self) -> Mapping[str, Any]:
        """Return the arguments by name as JSON, for checking. Values that may change are `Opaque`."""
        if self.bound is self.named or all(value is self.named[name] for name, value in self.bound.items()):
            return self.arguments
        return {name: plain(value) for name, value in self.bound.items()}

    @cached_property
    def _aimed(self) -> tuple[Any, Exception | None]:
        """Return the target of the call as its tool names it, and the error if that cannot be trusted."""
        if self.declared.target is None:
            return None, None
        try:
            found = self.declared.target(dict(self.arguments))
            # Spelled once: an object may have another spelling the next time.
            spelled = found if is_plain(found) else plain(found)
        except Exception as error:  # noqa: BLE001 - the tool's own code, on whatever it was given
            return None, error
        seen = veiled(found)
        return spelled, InvalidValueError("target", _unnamed(None, seen)) if type(seen) is Opaque else None

    @property
    def aim(self) -> Any:  # noqa: ANN401 - whatever the tool says
        """Return the target of the call as its tool names it: usually a text, but any value is possible."""
        return self._aimed[0]

    @cached_property
    def target(self) -> str | None:
        """Return the target of the call as text, if the tool names one."""
        if isinstance(self.aim, list | dict):
            return json.dumps(self.aim, ensure_ascii=False)  # it names nothing; but secrets in it are found in JSON
        return None if self.aim is None else readable(str(self.aim))

    def require_sound(self) -> None:
        """Refuse a call that cannot be judged.

        Raises `InvalidValueError` with the field that is wrong: `target`, or the `unsound` field of the declaration.
        Also raises the error of an argument that could not be read.
        """
        fault = self._described[1] or self._aimed[1]
        if fault is not None:
            raise fault
        if self.declared.unsound is not None:
            raise InvalidValueError(*self.declared.unsound)
        self.require_target()

    def require_target(self) -> None:
        """Refuse a call that does not name its target. Raises `InvalidValueError`.

        A list, bytes or an object have a spelling too, but no file has that name. A number is refused for files,
        because it would mean an open file descriptor. With an action of its own, a number may name something, such as
        an order.
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
        """Refuse a target that was computed from an opaque value: without that value, it comes out differently."""
        try:
            same = self.declared.target is not None and self.declared.target(dict(self.judged)) == self.aim
        except Exception:  # noqa: BLE001 - it needed the opaque value
            same = False
        if not same:
            raise InvalidValueError(
                "target",
                "is made of an object that may say something else when the tool asks; pass texts, numbers or lists",
            )

    @cached_property
    def path(self) -> str | None:
        """Return the path of the target of the call: as the tool says, else its argument `path`."""
        if self.declared.target is not None:
            return self.target
        given = self.named.get(_PATH)
        described = self.arguments.get(_PATH)  # the spelling of a path is read once, and is here
        return described if isinstance(given, str | PathLike) and isinstance(described, str) else None

    @property
    def action(self) -> str:
        """Return the action as a grant names it: as declared, else read or write. Without a path it is `call`."""
        if self.declared.action is not None:
            return self.declared.action
        if self.path is None:
            return CALL
        return READ if self.declared.reads else WRITE

    @property
    def resource(self) -> str:
        """Return the resource as a grant names it. A tool that names nothing it acts on is its own resource."""
        return self.path or self.declared.named or self.declared.name

    @property
    def acts_on_path(self) -> bool:
        """Return whether the resource comes from the arguments, and is not the tool itself."""
        return self.path is not None

    @property
    def seen_elsewhere(self) -> bool:
        """Return whether the door of this call looks at the changed files itself."""
        return False

    @property
    def told_by_door(self) -> DoorFacts | None:
        """Return the facts that the door of another program's call tells the rules; None for a call of our own runs."""
        return None

    def find_refusals(self) -> Iterable[GateDecision]:
        """Return the denials by rules that only the door of this call knows."""
        return ()

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return the arguments, as the tool gets them, in which a path to something protected may occur."""
        return self.named

    @property
    def follows_paths(self) -> bool:
        """Return whether paths in the arguments are files of this machine, judged by where they lead."""
        return True


def _plain_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the parameter names if each can be passed by place or by name; None for any other function."""
    if type(function) is not FunctionType or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return None
    code = function.__code__
    if code.co_flags & _TAKES_MORE or code.co_posonlyargcount or code.co_kwonlyargcount:
        return None
    return code.co_varnames[: code.co_argcount]


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function. It is computed once for each function object."""
    if not isinstance(function, FunctionType):
        return inspect.signature(function)
    known = _SIGNATURES.get(function)
    if known is None:
        known = _SIGNATURES[function] = inspect.signature(function)
    return known


def _unnamed(name: str | None, given: object) -> str:
    """Return the sentence that says why a call names nothing that could be checked."""
    which = "what the tool acts on" if name is None else f"the argument {name}"
    if type(given) is Opaque:
        return f"{which} is {given!r} when the tool asks; pass a text, or a path of pathlib"
    if given is None:
        return f"{which} is not given; give it, by a parameter of its own"
    return f"{which} is empty; name one thing"
