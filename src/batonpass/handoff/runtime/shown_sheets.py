"""When this relay handed out what is to be decided, by a clock that nobody can set: how long somebody has had it.

Only what was shown here can be measured here. What somebody claims who showed it elsewhere is recorded apart from this.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from batonpass.model.base.ids import Digest

_MOST: Final = 1024  # of as many holds at once nobody has read the first
_NANOSECONDS: Final = 1_000_000


class Showings(Struct):
    """What this relay handed out to be shown, and when it did so last."""

    clock: Callable[[], int] = time.monotonic_ns
    _shown: dict[tuple[Digest, Digest], int] = field(default_factory=dict)  # by hold, and by the text that was shown
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, hold: Digest, text: Digest) -> None:
        """Remember that a text about a hold is handed out now."""
        with self._lock:
            # The latest counts: of somebody who fetches it twice it is known only since when they have it at least.
            self._shown.pop((hold, text), None)
            self._shown[hold, text] = self.clock()
            while len(self._shown) > _MOST:
                del self._shown[next(iter(self._shown))]

    def measure(self, hold: Digest, text: Digest) -> int | None:
        """Return for how many milliseconds a text has been out by now; None if it was not shown here."""
        with self._lock:
            since = self._shown.get((hold, text))
        return None if since is None else (self.clock() - since) // _NANOSECONDS
