"""What a store has acknowledged, remembered outside of it: a store that no longer has it was put back in time.

A head that is remembered for each stream shows a loss in that stream. A backup that is restored loses whole streams,
and whoever begins a new one would notice nothing. So a relay remembers the latest receipt that was acknowledged to it,
in whichever stream, and asks for that before it writes again: in this process, and across processes in a file beside
its key. Where an append can look for it by itself, it does; else the store is asked now and then. The file is written
when the relay is closed and now and then, and never waited for: after a crash it is older than it could be, and what it
says is still true.
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
    """What is remembered: the latest, and the one that was the latest when the store was last asked."""

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
        """Return what the next append has to come after, where it looks for that itself; None if it does not.

        Where it does not, the store is asked here, unless it was a moment ago. Raises `RewoundError`.
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
        """Return why a store takes nothing more, with what to do if it was put back on purpose."""
        return RewoundError(error.stream, error.expected, error.found, remembered=self._path)

    def _require(self, every: float) -> None:
        """Refuse to go on if the store lacks what it had acknowledged, as far as that was not asked just now."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at < every:
            return
        # All that is asked for is read before the view is opened: what another thread or process is told meanwhile is
        # not in that view, and is not lost.
        latest, asked = self._known.latest, self._known.asked
        if self._ledger is None:
            asked = self._read()
        try:
            self._confirm(latest, asked)
        except StoreUnavailableError:
            return  # a server that restarts is waited for by the append itself; it is asked again with the next one
        self._known.asked, self._asked_at = latest or asked, now

    def _confirm(self, latest: Mark | None, asked: Mark | None) -> None:
        with self._store.view() as view:
            if self._ledger is None:
                self._ledger = view.info().id
            # Something may have been written to a store that was put back meanwhile: the latest is there then, and
            # what was there before that is not.
            for mark in dict.fromkeys((latest, asked)):
                if mark is not None and mark.ledger == self._ledger:
                    self._require_in(view, mark)

    def take(self, signed: SignedReceipt) -> None:
        """Remember a receipt that was acknowledged just now."""
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
        """Write down what is remembered, for the next process; what another one wrote later stays."""
        mark, path = self._known.latest, self._path
        if mark is None or path is None:
            return
        with self._lock:
            self._since_written = 0
            found = self._read()
            if found is not None and found.ledger == mark.ledger and found.at > mark.at:
                return
            waiting = path.with_name(f"{path.name}.{os.getpid()}")
            # A disk that is full or read-only takes nothing from what is recorded: only this net is thinner.
            with contextlib.suppress(OSError):
                waiting.write_bytes(msgspec.json.encode(mark))
                waiting.replace(path)

    def _read(self) -> Mark | None:
        """Return what was written down; None if nothing was, or it cannot be read."""
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
