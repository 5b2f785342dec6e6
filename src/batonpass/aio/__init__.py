"""The same methods for asynchronous programs: `AsyncRelay`, `AsyncRun`, `AsyncHandoff` and `AsyncCall`.

Await every method and no property. The exceptions are methods that touch no ledger, which are called without `await`:
`register`, `introduce`, `agent`, `check` and `credential` of a relay, and `report`, `note_message`, `is_limited` and
`as_current` of a run. `async with` also takes `start`, `hand_off` and `accept` without `await`.

Each method runs its synchronous twin in a thread. A cancellation takes effect when the twin has finished, so nothing is
left half done. These threads are a pool of their own, because any library may fill the pool of the event loop. The code
of agents may take long, so it never runs in this pool.
"""

from batonpass.aio.relay import AsyncRelay
from batonpass.aio.run import AsyncCall, AsyncHandoff, AsyncRun
from batonpass.aio.run import current_async_run as current_run

__all__ = ["AsyncCall", "AsyncHandoff", "AsyncRelay", "AsyncRun", "current_run"]
