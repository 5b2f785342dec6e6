"""Events that came already by another file of hooks: an agent that runs both tells both the same."""

import json
import threading
from hashlib import sha256
from typing import Any, Final

from batonpass.adapters.coders.events import HookEvent

_MOST: Final = 1024


class HeardEvents:
    """Remembers the last events that have a time of their own but no ids of calls, with our answers. Thread-safe.

    An agent that gives calls ids needs none of this: a repeated event is known by its id. Without a time, two equal
    events may be two calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[bytes, dict[str, Any]] = {}

    def find(self, event: HookEvent) -> dict[str, Any] | None:
        """Return the answer to an event that was heard already; None if it is new."""
        key = _key(event)
        if key is None:
            return None
        with self._lock:
            return self._answers.get(key)

    def keep(self, event: HookEvent, answer: dict[str, Any]) -> dict[str, Any]:
        """Remember the answer to an event, and return it."""
        key = _key(event)
        if key is not None:
            with self._lock:
                self._answers[key] = answer
                while len(self._answers) > _MOST:
                    del self._answers[next(iter(self._answers))]
        return answer


def _key(event: HookEvent) -> bytes | None:
    if "timestamp" not in event.raw:
        return None
    said = json.dumps([event.coder, event.raw], sort_keys=True, default=str)
    return sha256(said.encode("utf-8", "surrogatepass")).digest()
