"""What a tool can know about the call that it is in."""

from contextvars import ContextVar
from dataclasses import dataclass

from batonpass.credentials import Credential
from batonpass.model.ids import CallId, Digest, RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The call that is under way: pass `key` to a service that recognises repeated requests by it."""

    run: RunId
    call: CallId
    key: Digest
    attempt: int
    credential: Credential | None = None  # of a tool that declares one


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
