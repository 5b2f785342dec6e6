"""How deliveries pace themselves: where they keep how far they have come, and how long one waits after a failure."""

import random
from datetime import timedelta
from typing import Final

OUTBOX_FOLDER: Final = "outbox"  # beside the keys
_FIRST_PAUSE: Final = timedelta(seconds=5)
_MOST_DOUBLINGS: Final = 20


def pause_after(tries: int, most: timedelta) -> timedelta:
    """Return how long to wait after so many failures: twice as long each time, and never all at the same moment."""
    pause: timedelta = min(_FIRST_PAUSE * 2 ** min(tries - 1, _MOST_DOUBLINGS), most)
    part: float = random.uniform(0.5, 1)  # noqa: S311 - no secret
    return pause * part
