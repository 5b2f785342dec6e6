"""Names for the calls of agents that give them none: made from tool and arguments, and marked as inferred."""

import json
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.session.hook_session import HookSession

INFERRED: Final = "inferred-"
_DIGITS: Final = 16


def with_name(state: HookSession, event: HookEvent) -> HookEvent:
    """Return an event about a call with a name for it: a new one before the call, after it the one from before.

    Two calls with the same tool and arguments are told apart by their order. If one was interrupted, the later result
    is that of the later call.
    """
    if not event.inferred or event.call:
        return event
    begins = f"{INFERRED}{_digest(event)}-"
    awaited = state.awaited.setdefault(begins, [])
    if event.name == "PreToolUse":
        awaited.append(f"{begins}{_next(state, begins)}")
        return replace(event, call=awaited[-1])
    if awaited:
        return replace(event, call=awaited.pop())
    # Another process named it; or nobody asked about it.
    left = [name for name, made in state.calls.items() if name.startswith(begins) and made.open]
    left += [offer.call for offer in state.offers.values() if offer.call is not None and offer.call.startswith(begins)]
    return replace(event, call=left[-1] if left else f"{begins}{_next(state, begins)}")


def forget_name(state: HookSession, event: HookEvent) -> None:
    """Expect no result of a call that was refused."""
    for awaited in state.awaited.values():
        if event.call in awaited:
            awaited.remove(event.call)


def _next(state: HookSession, begins: str) -> int:
    return 1 + sum(name.startswith(begins) for name in _names(state))


def _names(state: HookSession) -> set[str]:
    offered = {offer.call for offer in state.offers.values() if offer.call is not None}
    return {*state.calls, *offered, *(name for names in state.awaited.values() for name in names)}


def _digest(event: HookEvent) -> str:
    said = json.dumps([event.agent, event.tool, event.input], sort_keys=True, default=str)
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
