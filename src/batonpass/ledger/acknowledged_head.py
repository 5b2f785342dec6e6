"""Detects a store that was rewound: each relay remembers the latest receipt that the store acknowledged.

A remembered head for each stream would show a loss in that stream. But a restored backup loses whole streams, and the
writer of a new stream would notice nothing. So a relay remembers one receipt, the latest in any stream, and makes sure
that the store still has it before it writes again: within a process from memory, across processes from a file beside
its key.

A store that can check this inside the append does so. Any other is asked from time to time. The file is written when
the relay closes and after every 64 appends, and it is not synced. After a crash it may name an older receipt. The store
must have that one too, so the check is weaker then, but never wrong.
"""

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from batonpass.errors import NotFoundError, RewoundError, StoreUnavailableError
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.stream import Mark
from batonpass.store.admission import require_kept
from batonpass.store.port import LedgerStore, LedgerView
from batonpass.wire.canonical import digest

if TYPE_CHECKING:
    from batonpass.model.base.ids import LedgerId

FILE: Final = "acknowledged.json"
_WRITTEN_EVERY: Final = 64


_MARKS: Final = msgspec.json.Decoder(Mark)


class _Known(Struct):
    """The latest acknowledged receipt, and the one that was the latest when the store was last asked."""

    latest: Mark | None = None
    asked: Mark | None = None


class Acknowledged:
    """Remembers the latest receipt that a store acknowledged to one relay. Safe to use from many threads."""

    def __init__(self, store: LedgerStore, home: Path | None = None) -> None:
        self._store = store
        self._path = None if home is None else home / FILE
        self._lock = threading.Lock()
        self._ledger: LedgerId | None = None
        self._known = _Known()
        self._asked_at: float | None = None
        self._since_written = 0

    def latest(self) -> Mark | None:
        """Return the receipt that the store must check in the next append; None if it cannot check there.

        In that case the store is asked here, unless it was asked a moment ago. Raises `RewoundError`.
        """
        if self._store.confirm_every is not None:
            self._require(self._store.confirm_every)
            return None
        if self._ledger is None:
            with self._store.view() as view:
                self._ledger = view.info().id
            written = self._read()
            if self._known.latest is None and written is not None and written.ledger == self._ledger:
                self._known.latest = written
        return self._known.latest

    def explained(self, error: RewoundError) -> RewoundError:
        """Return the error with the path of our file, so that it can name the remedy for an intended rewind."""
        return RewoundError(error.stream, error.expected, error.found, remembered=self._path)

    def _require(self, every: float) -> None:
        """Refuse to go on if the store lacks an acknowledged receipt. Asks at most once in `every` seconds."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at < every:
            return
        # Both marks are read before the view is opened. A receipt that another thread or process gets acknowledged
        # later may be missing from that view, and is not lost.
        latest, asked = self._known.latest, self._known.asked
        if self._ledger is None:
            asked = self._read()
        try:
            self._confirm(latest, asked)
        except StoreUnavailableError:
            return  # the append itself waits for a server that restarts; the next append asks again
        self._known.asked, self._asked_at = latest or asked, now

    def _confirm(self, latest: Mark | None, asked: Mark | None) -> None:
        with self._store.view() as view:
            if self._ledger is None:
                self._ledger = view.info().id
            # Two marks, not one: after a rewind somebody may have written already. Then the latest mark is from after
            # the rewind and is there, and only the mark from the last time we asked is missing.
            for mark in dict.fromkeys((latest, asked)):
                if mark is not None and mark.ledger == self._ledger:
                    self._require_in(view, mark)

    def take(self, signed: SignedReceipt) -> None:
        """Remember a receipt that was just acknowledged."""
        receipt = signed.receipt
        if self._ledger is None:
            return
        self._known.latest = Mark(
            ledger=self._ledger, stream=receipt.stream, seq=receipt.seq, head=signed.digest, at=receipt.at
        )
        self._since_written += 1
        if self._since_written >= _WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Write the latest mark to the file, for the next process. A later mark of another process stays."""
        mark, path = self._known.latest, self._path
        if mark is None or path is None:
            return
        with self._lock:
            self._since_written = 0
            found = self._read()
            if found is not None and found.ledger == mark.ledger and found.at > mark.at:
                return
            waiting = path.with_name(f"{path.name}.{os.getpid()}")
            # If the disk is full or read-only, no receipt is lost: only this check gets weaker.
            with contextlib.suppress(OSError):
                waiting.write_bytes(msgspec.json.encode(mark))
                waiting.replace(path)

    def _read(self) -> Mark | None:
        """Return the mark in the file; None if there is none, or if it cannot be read."""
        if self._path is None:
            return None
        with contextlib.suppress(OSError, msgspec.DecodeError, RecursionError):
            return _MARKS.decode(self._path.read_bytes())
        return None

    def _require_in(self, view: LedgerView, mark: Mark) -> None:
        try:
            stream = view.get_stream(mark.stream)
        except NotFoundError:
            raise RewoundError(mark.stream, mark.seq, 0, remembered=self._path) from None
        try:
            then = digest(view.get_receipt_at(mark.stream, mark.seq).payload)
            require_kept(mark, stream, then)
        except (NotFoundError, RewoundError):
            raise RewoundError(mark.stream, mark.seq, stream.seq, remembered=self._path) from None
