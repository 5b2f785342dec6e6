"""Answers that were given, by the key that a client chose: the same request gets the same answer, and is done once.

Only successful requests are remembered, because a refusal changes nothing and may be lifted. Keys that must outlive
this process are in the ledger itself: the key of a start and of a handoff is in its receipt.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.errors import RepeatedKeyError
from batonpass.model.base.ids import TokenId

_MOST: Final = 10_000


class GivenAnswer(Struct, frozen=True):
    """An answer as it was sent."""

    status: int
    body: bytes


class _Kept(Struct):
    fingerprint: str
    done: threading.Lock
    answer: GivenAnswer | None = None


class AnswerMemory:
    """Remembers answers by token and key. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[TokenId, str], _Kept] = OrderedDict()

    def once(
        self, token: TokenId, key: str, request: bytes, act: Callable[[], GivenAnswer]
    ) -> tuple[GivenAnswer, bool]:
        """Return the answer to a request, and whether it was given before. Raises `RepeatedKeyError`.

        A request that comes while the first is under way waits for its answer.
        """
        fingerprint = sha256(request).hexdigest()
        with self._lock:
            kept = self._kept.setdefault((token, key), _Kept(fingerprint, threading.Lock()))
            self._kept.move_to_end((token, key))
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        if kept.fingerprint != fingerprint:
            raise RepeatedKeyError(key)
        with kept.done:
            if kept.answer is not None:
                return kept.answer, True
            try:
                kept.answer = act()
            finally:
                if kept.answer is None:
                    self._forget(token, key, kept)
            return kept.answer, False

    def _forget(self, token: TokenId, key: str, kept: _Kept) -> None:
        with self._lock:
            if self._kept.get((token, key)) is kept:
                del self._kept[token, key]
