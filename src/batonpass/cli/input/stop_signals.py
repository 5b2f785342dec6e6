"""Commands that run until a signal: the first one asks them to finish, the second one ends them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Final

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that the first signal sets; the second signal ends the process."""
    stop = threading.Event()
    signals: SimpleQueue[None] = SimpleQueue()

    def note(*_: int | FrameType | None) -> None:
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        # An event has a lock, which the interrupted code may hold right now; this queue has none.
        signals.put(None)

    def pass_on() -> None:
        signals.get()
        stop.set()

    before = {number: signal.signal(number, note) for number in _STOPPING}
    threading.Thread(target=pass_on, daemon=True).start()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signals.put(None)
