"""The tail: the rows that were written last and are in no index yet. How it is kept, settled and checked.

Every index that a commit updates adds a page to the write-ahead log, and most pages of a commit were index pages. So
new rows are written without index entries. Readers scan the tail, which is short, and now and then a commit settles it:
it writes the index entries of all its rows at once. See docs/adr/0053.
"""

from collections.abc import Callable, Iterator
from typing import Final

import apsw

from batonpass.errors import StoreAlteredError
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.stream import Mark
from batonpass.store.sql import Queries
from batonpass.store.sqlite.connection import Statements

QUERIES: Final = Queries("batonpass.store.sqlite")

# The longest tail, in receipts and contents. Every reader scans it, so a shorter one makes reads a little faster, but
# commits settle more often.
LONGEST: Final = 256

_LAST: Final = "\U0010ffff"  # sorts after every id
_RECEIPT: Final = QUERIES["is_settled_receipt"]
_CONTENT: Final = QUERIES["is_settled_content"]
_CHECKS: Final = {
    "receipt_names": "misfiled_names",
    "receipt_places": "misfiled_places",
    "content_ids": "misfiled_contents",
    "runs": "misfiled_runs",
    "handoffs": "misfiled_handoffs",
}


class Tail:
    """The ids of receipts and contents in the tail, as the one writing connection knows them.

    Used in its transactions only. No unique index covers the tail, so an id that is taken is detected by this set.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.known = False  # whether `ids` is right for the current transaction
        # Receipts that we wrote into this tail and into the one before it: digest to stream and seq.
        self._heads: dict[str, tuple[str, int]] = {}
        self._earlier_heads: dict[str, tuple[str, int]] = {}
        self._version: int | None = None  # SQLite's data version after our last commit
        # Called when others may have committed; raises to refuse the transaction.
        self.inspect: Callable[[apsw.Connection], None] = _trust
        self._greatest_receipt = self._greatest_content = ""  # the greatest ids in the indexes

    def begin(self, connection: apsw.Connection) -> None:
        """Begin a transaction: notice whether anybody else has committed since our last one."""
        # Once per transaction is enough: until it ends, nobody else can commit. This number counts our own commits too,
        # so it is read again after each of them. PRAGMA data_version does not count them, but takes forty times as
        # long.
        self.known = self.known and connection.data_version() == self._version
        if not self.known:
            self.inspect(connection)

    def committed(self, connection: apsw.Connection) -> None:
        """Remember the data version that our own commit has produced."""
        # If others have committed in between, the next transaction sees a different number and reads the tail again.
        try:
            self._version = connection.data_version()
        except apsw.Error:
            self.forget()  # the commit is durable in any case; the next transaction reads the tail again

    def catch_up(self, connection: Statements) -> set[str]:
        """Read the ids in the tail from the ledger and return them: another connection may have added or settled some.

        Raises `StoreAlteredError` if the ledger does not say where its tail begins.
        """
        row = connection.execute(QUERIES["get_settled"]).fetchone()
        if row is None:
            raise StoreAlteredError(
                "the ledger does not say which of its rows are in the indexes; nothing was recorded"
            )
        receipt, content, _, _ = row
        late = (("find_late_receipts", receipt), ("find_late_contents", content))
        self.ids = {identifier for name, last in late for (identifier,) in connection.execute(QUERIES[name], (last,))}
        self._heads = {}
        self._earlier_heads = {}
        self._find_greatest(connection)
        self.known = True
        return self.ids

    def forget(self) -> None:
        """Trust nothing that is remembered: rows may have been rolled back."""
        self.known = False

    def has(self, mark: Mark) -> bool:
        """Return whether we wrote this receipt and nobody else has committed since.

        If False, it may exist all the same.
        """
        known = self._heads.get(mark.head) or self._earlier_heads.get(mark.head)
        return known == (mark.stream, mark.seq)

    def add_receipt(self, connection: Statements, signed: SignedReceipt) -> bool:
        """Add the id of a new receipt to the tail; return False if it is taken, in the tail or in the indexes."""
        receipt = signed.receipt
        # An id begins with the time, so a new id is nearly always greater than every settled one, and no query is
        # needed.
        if receipt.id in self.ids or (
            receipt.id <= self._greatest_receipt and _is_there(connection, _RECEIPT, receipt.id)
        ):
            return False
        self.ids.add(receipt.id)
        self._heads[signed.digest] = receipt.stream, receipt.seq
        return True

    def add_content(self, connection: Statements, content: str) -> bool:
        """Add the id of a new content to the tail; return False if it is taken, in the tail or in the indexes."""
        if content in self.ids or (content <= self._greatest_content and _is_there(connection, _CONTENT, content)):
            return False
        self.ids.add(content)
        return True

    def settle(self, connection: Statements) -> None:
        """Write the index entries of all rows in the tail. The tail is empty afterwards."""
        connection.execute(QUERIES["settle"])
        self.ids.clear()
        # Appends that are under way have seen receipts that are settled now.
        self._earlier_heads, self._heads = self._heads, {}
        self._find_greatest(connection)

    def _find_greatest(self, connection: Statements) -> None:
        ((receipt, content),) = connection.execute(QUERIES["greatest_settled"])
        self._greatest_receipt, self._greatest_content = _as_greatest(receipt), _as_greatest(content)


def _trust(connection: apsw.Connection) -> None:
    """Accept every state: the default before a writer sets its own check."""


def find_misfiled(connection: Statements) -> Iterator[tuple[str, str]]:
    """Yield each of our own index tables that contradicts the rows: its name, and a sentence about it."""
    if connection.execute(QUERIES["get_settled"]).fetchone() is None:
        yield "settled", "nobody knows which rows are in the indexes"
    for table, check in _CHECKS.items():
        for (name,) in connection.execute(QUERIES[check]):
            yield table, f"{name} is not found through {table} as it should be"


def _as_greatest(identifier: object) -> str:
    # SQLite keeps any type in any column. Where somebody put another one, each id is asked for.
    return identifier if isinstance(identifier, str) else "" if identifier is None else _LAST


def _is_there(connection: Statements, query: str, identifier: str) -> bool:
    return connection.execute(query, (identifier,)).fetchone() is not None
