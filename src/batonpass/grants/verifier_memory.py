"""The memory of a verifier: chains that it has verified, and proofs that it has seen. Both are bounded."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime
from typing import Generic, TypeVar

from batonpass.errors import GrantReplayedError

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The values that were used last, by key. When it is full, the least recently used value goes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Value | None:
        """Return the value for a key, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def keep(self, key: Hashable, value: Value) -> Value:
        """Remember a value, and return it."""
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._values)


class SeenProofs:
    """Proofs that were shown, each until it is too old to be accepted anyway. For one process; safe for threads."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._ends: OrderedDict[str, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def require_new(self, proof: str, ends: datetime, at: datetime) -> None:
        """Refuse a proof that was shown before; remember any other. Raises `GrantReplayedError`.

        When the memory is full, every proof is refused: to forget one would let it be used again.
        """
        with self._lock:
            while self._ends and next(iter(self._ends.values())) < at:
                self._ends.popitem(last=False)
            if proof in self._ends:
                raise GrantReplayedError("this proof was shown before; make a new one for each call")
            if len(self._ends) >= self._most:
                raise GrantReplayedError(f"{self._most:,} proofs were shown in a short time; try again in a minute")
            self._ends[proof] = ends
