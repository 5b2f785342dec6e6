"""A tree's secret: it makes equal things comparable in signed bytes without giving away what they are.

It is a content of the root's first receipt. Once it is erased, nobody can confirm a guess about what was called or
asked for any more; nothing new can be recognised as a repetition either.
"""

import hmac
import os
import threading
from hashlib import sha256
from typing import Final

from batonpass.clock import Clock
from batonpass.model.content import Content, new_content
from batonpass.model.ids import Digest, RunId, StreamId
from batonpass.store.port import LedgerStore
from batonpass.wire.codec import decode_receipt

SECRET: Final = "secret"  # noqa: S105 - the name of a content
_BYTES: Final = 32
_KEPT_AT_MOST: Final = 4096


class TreeSecrets:
    """The secrets of the trees that this process works on."""

    def __init__(self, store: LedgerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[RunId, bytes] = {}
        self._lock = threading.Lock()

    def new(self) -> Content:
        """Return a new secret, to be committed with a root's first receipt."""
        return new_content(SECRET, os.urandom(_BYTES), self._clock.now(), media_type="application/octet-stream")

    def keep(self, root: RunId, secret: bytes) -> None:
        """Remember a tree's secret."""
        with self._lock:
            while len(self._known) >= _KEPT_AT_MOST:
                self._known.pop(next(iter(self._known)))
            self._known[root] = secret

    def fetch(self, root: RunId) -> None:
        """Have a tree's secret at hand, so that what is called can be recognised also while the store is away."""
        self._secret(root)

    def digest(self, root: RunId, *parts: bytes) -> Digest:
        """Return the digest of some parts, keyed with a tree's secret."""
        message = b"".join(len(part).to_bytes(8) + part for part in parts)
        return Digest(hmac.new(self._secret(root), message, sha256).hexdigest())

    def _secret(self, root: RunId) -> bytes:
        with self._lock:
            known = self._known.get(root)
        if known is None:
            known = self._read(root)
            self.keep(root, known)
        return known

    def _read(self, root: RunId) -> bytes:
        with self._store.view() as view:
            ref = decode_receipt(view.get_receipt_at(StreamId(root), 1).payload).content.get(SECRET)
            body = None if ref is None else view.get_content(ref.id).body
        # Erased, or never there: then nothing of this tree can be recognised again, which is what erasing it means.
        return os.urandom(_BYTES) if body is None else body
