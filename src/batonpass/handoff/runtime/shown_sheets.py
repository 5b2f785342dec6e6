"""When this relay showed a decision sheet: it measures how long an approver had it, by a clock that nobody can set.

Only sheets that were shown here are measured. A time that a caller claims is recorded in another field.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from batonpass.model.base.ids import Digest

_MOST: Final = 1024  # nobody still reads the first of so many sheets
_NANOSECONDS: Final = 1_000_000


class Showings(Struct):
    """The decision sheets that this relay has shown, and when it last did."""

    clock: Callable[[], int] = time.monotonic_ns
    _shown: dict[tuple[Digest, Digest], int] = field(default_factory=dict)  # by hold and text
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def show(self, hold: Digest, text: Digest) -> None:
        """Remember that the text about a hold is shown now."""
        with self._lock:
            # The last showing counts, so the measured time is the shortest for which the approver can have had it.
            self._shown.pop((hold, text), None)
            self._shown[hold, text] = self.clock()
            while len(self._shown) > _MOST:
                del self._shown[next(iter(self._shown))]

    def measure(self, hold: Digest, text: Digest) -> int | None:
        """Return how many milliseconds ago a text was last shown; None if it was not shown here."""
        with self._lock:
            since = self._shown.get((hold, text))
        return None if since is None else (self.clock() - since) // _NANOSECONDS
