"""The same acts for asynchronous programs: the same names, and no logic of its own.

One rule says what is awaited: every method is, and no property. These methods touch no ledger, and are called as they
are: `register`, `introduce`, `agent`, `check` and `credential` of a relay, and `report`, `note_message`, `is_limited`
and `as_current` of a run. `async with` takes what opens something (`start`, `hand_off`, `accept`) without `await`.

Each act is done by its synchronous twin in a thread. Whoever is cancelled meanwhile gets their way when it is done, so
nothing is ever half done, or done without anybody knowing. The acts have threads of their own, and not the loop's,
which anybody may fill; code of agents may take long, and never gets a thread from that pool.
"""

from batonpass.aio.relay import AsyncRelay
from batonpass.aio.run import AsyncCall, AsyncHandoff, AsyncRun
from batonpass.aio.run import current_async_run as current_run

__all__ = ["AsyncCall", "AsyncHandoff", "AsyncRelay", "AsyncRun", "current_run"]
