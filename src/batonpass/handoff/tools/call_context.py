"""What a tool can know about the call that it is in, and what it says meanwhile that it changed."""

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
    """What one call says that it changed, until it has ended. Several threads may say something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[SaidChange] = []
        self._cut = False
        self._over = False

    def add(self, kind: EffectKind | str, target: str, *, how: str | None = None, count: int | None = None) -> None:
        """Note an effect. Raises `InvalidValueError` for one that is none, and once the call has ended."""
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
        """Return all that was said, and whether there was more; from now on it is too late."""
        with self._lock:
            self._over = True
            return tuple(self._said), self._cut


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The call that is under way: pass `key` to a service that recognises repeated requests by it."""

    run: RunId
    call: CallId
    key: Digest
    attempt: int
    credential: Credential | None = None  # of a tool that declares one
    sayings: Sayings = field(default_factory=Sayings, repr=False, compare=False)

    def effect(self, kind: EffectKind | str, target: str, *, how: str | None = None, count: int | None = None) -> None:
        """Say what the call has just changed: its outcome will.

        `kind` is `http`, `database`, `message`, `file` or `custom`, `target` what was changed, `how` a word such as
        POST and `count` how many rows or recipients. Raises `InvalidValueError` once the call has ended.
        """
        self.sayings.add(kind, target, how=how, count=count)


_CURRENT: ContextVar[CallContext | None] = ContextVar("batonpass_call", default=None)


def current_call() -> CallContext | None:
    """Return the call that this code runs in; None outside of `run.call`."""
    return _CURRENT.get()


def entered(context: CallContext) -> "Entered":
    """Return a context in which `current_call` returns this call."""
    return Entered(context)


class Entered:
    """Makes a call the current one for as long as the block runs."""

    def __init__(self, context: CallContext) -> None:
        self._context = context

    def __enter__(self) -> CallContext:
        self._token = _CURRENT.set(self._context)
        return self._context

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
