"""What a tool can know about the call that it is in."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from batonpass.credentials import Credential
from batonpass.handoff.calls.sayings import Sayings
from batonpass.model.effect import EffectKind
from batonpass.model.ids import CallId, Digest, RunId


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
