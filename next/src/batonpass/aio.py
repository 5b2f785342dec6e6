"""The awaited face: the same names as in `batonpass`, for programs that run in an event loop.

`AsyncRelay`, `AsyncRun` and `AsyncHandoff` are made from the synchronous handles. A tool may be a coroutine, which is
awaited, or a function, which runs in a thread. `as_current` waits for nothing and stays a plain `with`.
"""

from collections.abc import Sequence

from batonpass.api import default
from batonpass.api.aio import AsyncHandoff, AsyncRelay, AsyncRun
from batonpass.api.async_port import AsyncPort, aside
from batonpass.api.default import current_call
from batonpass.api.handles import Relay
from batonpass.api.run_base import CURRENT_RUN
from batonpass.model.grants import Grant
from batonpass.model.items import AnyItem

__all__ = ["AsyncHandoff", "AsyncRelay", "AsyncRun", "current_call", "current_run", "default_relay", "of", "start"]


def of(relay: Relay) -> AsyncRelay:
    """Return a relay that was opened already, awaited. Both work on the same ledger, and closing one closes it."""
    return AsyncRelay(AsyncPort(default.port_here(relay)))


async def default_relay() -> AsyncRelay:
    """Return the relay of this folder, which is opened at its first use."""
    return AsyncRelay(AsyncPort(await aside(default.default_port)))


async def start(
    intent: str,
    *,
    by: str,
    agent: str = "lead",
    may: Sequence[str] | None = None,
    may_delegate: Sequence[str] | None = None,
    grant: Grant | None = None,
    items: Sequence[AnyItem] = (),
    key: str | None = None,
) -> AsyncRun:
    """Begin a run for a principal, on the ledger of this folder. With a grant it is enforced, else observed."""
    relay = await default_relay()
    return await relay.start(
        intent, by=by, agent=agent, may=may, may_delegate=may_delegate, grant=grant, items=items, key=key
    )


def current_run() -> AsyncRun | None:
    """Return the run that this code works for, to be awaited. A new task has it; a new thread needs `copy_context`."""
    run = CURRENT_RUN.get()
    if run is None or isinstance(run, AsyncRun):
        return run
    return AsyncRun(AsyncPort(default.port_here(run)), run.opened, run.progress)
