"""New receipts since the last look, from whichever process."""

from collections.abc import Iterator
from contextlib import suppress

from batonpass.errors import StoreBusyError, StoreReadOnlyError, StoreRefusedError
from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.store.port import LedgerStore, LedgerView, ReceiptQuery


class Feed:
    """Yields each receipt once, whichever process recorded it: by position, from where it stopped last.

    A store without notifications is polled. A notification is only a hint that there is something to read.
    """

    def __init__(self, store: LedgerStore, *, root: RunId | None = None) -> None:
        self._store = store
        self._root = root
        self._position = 0
        self._unsequenced: set[ReceiptId] = set()

    def sequence(self) -> None:
        """Give positions to receipts of others. Without write access, or while others write, nothing happens."""
        # Receipts without a position are read as well, so a reader never waits for the writers.
        with suppress(StoreReadOnlyError, StoreRefusedError, StoreBusyError):
            self._store.sequence()

    def skip(self, view: LedgerView) -> None:
        """Skip everything recorded so far."""
        self._position = view.last_position()
        for stored in view.find_receipts(ReceiptQuery(root=self._root, unsequenced=True)):
            self._unsequenced.add(stored.id)

    def read(self, view: LedgerView) -> Iterator[StoredReceipt]:
        """Yield the receipts since the last call, in order."""
        last = view.last_position()
        for stored in view.find_receipts(ReceiptQuery(root=self._root, first=self._position + 1, last=last)):
            if stored.id in self._unsequenced:
                self._unsequenced.discard(stored.id)  # yielded earlier, before it had a position
            else:
                yield stored
        self._position = last
        for stored in view.find_receipts(ReceiptQuery(root=self._root, unsequenced=True)):
            if stored.id not in self._unsequenced:
                self._unsequenced.add(stored.id)
                yield stored
