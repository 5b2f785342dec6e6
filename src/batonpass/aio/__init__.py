"""The same acts for asynchronous programs: the same names, and what touches the ledger is awaited. No logic of its own.

Each act is done by its synchronous twin in a thread. Whoever is cancelled meanwhile gets their way when it is done, so
nothing is ever half done, or done without anybody knowing. Code of agents may take long, and never gets a thread from
the pool that the acts on the ledger need.
"""

from batonpass.aio.relay import AsyncRelay
from batonpass.aio.run import AsyncCall, AsyncHandoff, AsyncRun
from batonpass.aio.run import current_async_run as current_run

__all__ = ["AsyncCall", "AsyncHandoff", "AsyncRelay", "AsyncRun", "current_run"]
