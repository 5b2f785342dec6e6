"""The secret of a tree: the key of digests in signed bytes, which can be compared but reveal nothing.

It is a content of the first receipt of the root run. Once it is erased, nobody can confirm a guess about a call or a
question any more. Then no new call can be recognised as a repetition either.
"""

import hmac
import os
import threading
from hashlib import sha256
from typing import Final

from batonpass.clock import Clock
from batonpass.model.base.ids import Digest, RunId, StreamId
from batonpass.model.ledger.content import Content, new_content
from batonpass.store.port import LedgerStore, LedgerView
from batonpass.wire.receipt_codec import decode_receipt

SECRET: Final = "secret"  # noqa: S105 - the name of a content
SESSION_SECRET: Final = "session-secret"  # noqa: S105 - the name of a content
_BYTES: Final = 32
_KEPT_AT_MOST: Final = 4096
_BLOCK: Final = 64  # of SHA-256, in bytes
_INNER: Final = bytes(0x36 ^ byte for byte in range(256))
_OUTER: Final = bytes(0x5C ^ byte for byte in range(256))


class _Keyed:
    """HMAC-SHA256 (RFC 2104) under one key, which is hashed once and not for each message.

    `hmac.digest` looks up its algorithm by name and hashes the key for each message. For our short messages, that takes
    longer than the rest.
    """

    __slots__ = ("_inner", "_outer", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        block = (sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner, self._outer = sha256(block.translate(_INNER)), sha256(block.translate(_OUTER))

    def digest(self, parts: tuple[bytes, ...]) -> Digest:
        """Return the digest of the parts, each preceded by its length."""
        inner, outer = self._inner.copy(), self._outer.copy()
        for part in parts:
            inner.update(len(part).to_bytes(8) + part)
        outer.update(inner.digest())
        return Digest(outer.hexdigest())


class TreeSecrets:
    """The secrets of the trees that this process works on."""

    def __init__(self, store: LedgerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[RunId, _Keyed] = {}
        self._sessions: dict[RunId, _Keyed] = {}
        self._lock = threading.Lock()

    def new(self) -> Content:
        """Return a new secret, to be committed with the first receipt of a root run."""
        return new_content(SECRET, os.urandom(_BYTES), self._clock.now(), media_type="application/octet-stream")

    def pass_on(self, root: RunId) -> Content:
        """Return the session secret of a root run, to be committed with the next root run of its session or series."""
        secret = self._session_secret(root).key
        return new_content(SESSION_SECRET, secret, self._clock.now(), media_type="application/octet-stream")

    def keep(self, root: RunId, secret: bytes, session: bytes | None = None) -> None:
        """Remember the secret of a tree, and the one that it shares with the trees of its session."""
        with self._lock:
            _keep(self._known, root, secret)
            _keep(self._sessions, root, _derived(secret) if session is None else session)

    def fetch(self, root: RunId, view: LedgerView | None = None) -> None:
        """Read the secret of a tree now, so that calls can be recognised even while the store is away."""
        if view is None:
            self._secret(root)
            return
        with self._lock:
            known = self._known.get(root)
        if known is None:
            self.keep(root, *_read_secrets(view, root))

    def digest(self, root: RunId, *parts: bytes) -> Digest:
        """Return the digest of the parts, keyed with the secret of a tree."""
        # No lock: reading a dict is one step. Only a secret that is not known yet needs the lock.
        secret = self._known.get(root) or self._secret(root)
        return secret.digest(parts)

    def session_digest(self, root: RunId, *parts: bytes) -> Digest:
        """Return the digest of the parts, keyed with the secret that only the trees of one session share."""
        return self._session_secret(root).digest(parts)

    def _session_secret(self, root: RunId) -> _Keyed:
        with self._lock:
            known = self._sessions.get(root)
        if known is None:
            self._secret(root)
            with self._lock:
                known = self._sessions[root]
        return known

    def _secret(self, root: RunId) -> _Keyed:
        with self._lock:
            known = self._known.get(root)
        if known is None:
            with self._store.view() as view:
                secret, session = _read_secrets(view, root)
            self.keep(root, secret, session)
            known = _Keyed(secret)
        return known


def _read_secrets(view: LedgerView, root: RunId) -> tuple[bytes, bytes | None]:
    content = decode_receipt(view.get_receipt_at(StreamId(root), 1).payload).content
    found = {name: view.get_content(content[name].id).body for name in (SECRET, SESSION_SECRET) if name in content}
    # Erased, or never there: a random secret takes its place. So nothing of this tree can be recognised again, as
    # erasing it promises.
    secret = found.get(SECRET) or os.urandom(_BYTES)
    session = found[SESSION_SECRET] or os.urandom(_BYTES) if SESSION_SECRET in found else None
    return secret, session


def _keep(known: dict[RunId, _Keyed], root: RunId, secret: bytes) -> None:
    while len(known) >= _KEPT_AT_MOST:
        known.pop(next(iter(known)))
    known[root] = _Keyed(secret)


def _derived(secret: bytes) -> bytes:
    """Return the session secret of the first tree of a session. Nobody can compute the secret of the tree from it."""
    return hmac.digest(secret, b"session", "sha256")
