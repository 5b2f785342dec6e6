"""The context of a call, as its tool sees it: ids, credential, and a way to report changes."""

import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from batonpass.credentials import Credential
from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_integer, require_text
from batonpass.model.base.ids import CallId, Digest, RunId
from batonpass.model.bodies.effect import EffectKind

MOST_EFFECTS: Final = 1000


class SaidChange(Struct, frozen=True, kw_only=True):
    """One thing that a tool says it changed."""

    kind: EffectKind
    target: str
    how: str | None = None
    count: int | None = None


class Sayings:
    """The changes that one call reports before it ends. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[SaidChange] = []
        self._cut = False
        self._over = False

    def add(self, kind: EffectKind | str, target: str, *, how: str | None = None, count: int | None = None) -> None:
        """Note an effect. Raises `InvalidValueError` for a malformed one, and once the call has ended."""
        known = as_member("kind", kind, EffectKind)
        require_text("target", target)
        if how is not None:
            require_text("how", how)
        if count is not None:
            require_integer("count", count)
        with self._lock:
            if self._over:
                raise InvalidValueError("effect", "the call has ended: its outcome is written")
            if len(self._said) < MOST_EFFECTS:
                self._said.append(SaidChange(kind=known, target=target, how=how, count=count))
            else:
                self._cut = True

    def take(self) -> tuple[tuple[SaidChange, ...], bool]:
        """Return all reported changes, and whether there were too many. Nothing can be added from now on."""
        with self._lock:
            self._over = True
            return tuple(self._said), self._cut


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The call that is under way. Pass `key` to a service that recognises repeated requests by it."""

    run: RunId
    call: CallId
    key: Digest
    attempt: int
    credential: Credential | None = None  # for a tool that declares one
    sayings: Sayings = field(default_factory=Sayings, repr=False, compare=False)

    def effect(self, kind: EffectKind | str, target: str, *, how: str | None = None, count: int | None = None) -> None:
        """Report something that the call has just changed. It is recorded with the outcome.

        `kind` is `http`, `database`, `message`, `file` or `custom`. `target` names the changed thing, `how` is a word
        such as POST, and `count` is the number of rows or recipients. Raises `InvalidValueError` once the call has
        ended.
        """
        self.sayings.add(kind, target, how=how, count=count)


_CURRENT: ContextVar[CallContext | None] = ContextVar("batonpass_call", default=None)


def current_call() -> CallContext | None:
    """Return the call in which this code runs; None outside of `run.call`."""
    return _CURRENT.get()


def entered(context: CallContext) -> "Entered":
    """Return a context in which `current_call` returns this call."""
    return Entered(context)


class Entered:
    """Makes a call the current one while the block runs."""

    def __init__(self, context: CallContext) -> None:
        self._context = context

    def __enter__(self) -> CallContext:
        self._token = _CURRENT.set(self._context)
        return self._context

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
