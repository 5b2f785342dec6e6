"""What was written last and is in no index yet: how it is kept apart, settled, and checked.

Every index that a commit writes to is a page more in the log, and there were more of them than of anything else. So
rows are written without; readers look at the few that came last, and every so often a commit settles all of them at
once. See docs/adr/0053.
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

# So many receipts and contents are in no index at most, and a reader looks at them. Fewer would be found a little
# sooner, and cost every commit more.
LONGEST: Final = 256

_LAST: Final = "\U0010ffff"  # sorts behind every id
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
    """The ids in the tail, as the one connection that writes knows them. Used inside its transactions alone."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.known = False  # the ids are those of this transaction
        self._heads: dict[str, tuple[str, int]] = {}  # the receipts that we wrote into the tail: digest, stream, seq
        self._version: int | None = None  # SQLite's count of commits when our last one was made
        # Looks at what others may have done, and may refuse to go on.
        self.inspect: Callable[[apsw.Connection], None] = _trust
        self._greatest_receipt = self._greatest_content = ""  # of the ids in the indexes

    def begin(self, connection: apsw.Connection) -> None:
        """Begin a transaction, and look whether somebody else has committed anything since our last one."""
        # Once for all its commands: until it ends, nobody else can. This counts our own commits as well, so it is
        # read once more after each of them. PRAGMA data_version leaves them out, and takes forty times as long.
        self.known = self.known and connection.data_version() == self._version
        if not self.known:
            self.inspect(connection)

    def committed(self, connection: apsw.Connection) -> None:
        """Remember the state of the ledger that our own commit has just made."""
        # Others may have committed by now: that shows when the next transaction begins, in this count as well.
        try:
            self._version = connection.data_version()
        except apsw.Error:
            self.forget()  # what is durable is durable; whoever comes next reads the tail again

    def catch_up(self, connection: Statements) -> set[str]:
        """Return the ids of receipts and contents that are in no index; another connection may have added some."""
        row = connection.execute(QUERIES["get_settled"]).fetchone()
        if row is None:
            raise StoreAlteredError(
                "the ledger does not say which of its rows are in the indexes; nothing was recorded"
            )
        receipt, content, _, _ = row
        late = (("find_late_receipts", receipt), ("find_late_contents", content))
        self.ids = {identifier for name, last in late for (identifier,) in connection.execute(QUERIES[name], (last,))}
        self._heads.clear()
        self._find_greatest(connection)
        self.known = True
        return self.ids

    def forget(self) -> None:
        """Know nothing any more: what was added may have been rolled back."""
        self.known = False

    def has(self, mark: Mark) -> bool:
        """Return whether we wrote a receipt since anybody else wrote; if not, it may be there all the same."""
        return self._heads.get(mark.head) == (mark.stream, mark.seq)

    def add_receipt(self, connection: Statements, signed: SignedReceipt) -> bool:
        """Take the id of a new receipt; return False if there is one with this id, in the tail or in the indexes."""
        receipt = signed.receipt
        # An id begins with the time, so a new one is greater than all that were settled, and nothing has to be asked.
        if receipt.id in self.ids or (
            receipt.id <= self._greatest_receipt and _is_there(connection, _RECEIPT, receipt.id)
        ):
            return False
        self.ids.add(receipt.id)
        self._heads[signed.digest] = receipt.stream, receipt.seq
        return True

    def add_content(self, connection: Statements, content: str) -> bool:
        """Take the id of a new content; return False if there is one with this id, in the tail or in the indexes."""
        if content in self.ids or (content <= self._greatest_content and _is_there(connection, _CONTENT, content)):
            return False
        self.ids.add(content)
        return True

    def settle(self, connection: Statements) -> None:
        """Put everything that is in the tail into the indexes."""
        connection.execute(QUERIES["settle"])
        self.ids.clear()
        self._heads.clear()
        self._find_greatest(connection)

    def _find_greatest(self, connection: Statements) -> None:
        ((receipt, content),) = connection.execute(QUERIES["greatest_settled"])
        self._greatest_receipt, self._greatest_content = _as_greatest(receipt), _as_greatest(content)


def _trust(connection: apsw.Connection) -> None:
    """Look at nothing."""


def find_misfiled(connection: Statements) -> Iterator[tuple[str, str]]:
    """Yield each index of our own that does not say what the rows say: its name, and what is wrong with it."""
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
