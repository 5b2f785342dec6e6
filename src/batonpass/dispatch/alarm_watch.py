"""The watch over alarms: weeks are compared from time to time, beside a worker or a server.

Comparing costs something, and an alarm that no rule reads stops nobody. So it is done only where a rule of the policy
reads alarms; `batonpass alarm check` does it in any case.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Final

from batonpass.dispatch.side_work import side_work
from batonpass.errors import StoreError
from batonpass.relay import Relay

EVERY: Final = timedelta(hours=1)


def alarm_watch(
    relay: Relay, *, every: timedelta = EVERY, troubled: Callable[[StoreError], None] = lambda _: None
) -> AbstractContextManager[None]:
    """Check alarms at the beginning of a block and every hour while it runs, in a thread of its own."""

    def watch(over: threading.Event) -> None:
        while not over.is_set():
            try:
                relay.check_alarms()
            except StoreError as error:
                troubled(error)  # the next look may be luckier
            over.wait(every.total_seconds())

    return side_work(watch, "alarms") if relay.reads_alarms else nullcontext()
