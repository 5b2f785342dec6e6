"""What was written last and is in no index yet: how it is kept apart, settled, and checked.

Every index that a commit writes to is a page more in the log, and there were more of them than of anything else. So
rows are written without; readers look at the few that came last, and every so often a commit settles all of them at
once. See docs/adr/0053.
"""

from collections.abc import Iterator
from typing import Final

from batonpass.errors import StoreAlteredError
from batonpass.store.sql import Queries
from batonpass.store.sqlite.connection import Statements

QUERIES: Final = Queries("batonpass.store.sqlite")

# So many receipts and contents are in no index at most, and a reader looks at them. Fewer would be found a little
# sooner, and cost every commit more.
LONGEST: Final = 256

_DATA_VERSION: Final = QUERIES["data_version"]
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
        self._version: int | None = None  # SQLite's count of what other connections have committed
        self._seen: int | None = None  # that count when the ids were read; None: they have to be read again

    def begin(self, connection: Statements) -> bool:
        """Begin a transaction; return whether nobody else has committed anything since the ids were read."""
        # Once for all its commands: until it ends, nobody else can. What we roll back is no commit of anybody; then
        # `forget` was called.
        ((self._version,),) = connection.execute(_DATA_VERSION)
        self.known = self._version == self._seen
        return self.known

    def catch_up(self, connection: Statements) -> set[str]:
        """Return the ids of receipts and contents that are in no index; another connection may have added some."""
        self.ids = _read(connection)
        self._seen = self._version
        self.known = True
        return self.ids

    def forget(self) -> None:
        """Know nothing any more: what was added may have been rolled back."""
        self._seen = None
        self.known = False

    def settle(self, connection: Statements) -> None:
        """Put everything that is in the tail into the indexes."""
        connection.execute(QUERIES["settle"])
        self.ids.clear()


def find_misfiled(connection: Statements) -> Iterator[tuple[str, str]]:
    """Yield each index of our own that does not say what the rows say: its name, and what is wrong with it."""
    if connection.execute(QUERIES["get_settled"]).fetchone() is None:
        yield "settled", "nobody knows which rows are in the indexes"
    for table, check in _CHECKS.items():
        for (name,) in connection.execute(QUERIES[check]):
            yield table, f"{name} is not found through {table} as it should be"


def _read(connection: Statements) -> set[str]:
    row = connection.execute(QUERIES["get_settled"]).fetchone()
    if row is None:
        raise StoreAlteredError("the ledger does not say which of its rows are in the indexes; nothing was recorded")
    receipt, content, _, _ = row
    late = (("find_late_receipts", receipt), ("find_late_contents", content))
    return {identifier for name, last in late for (identifier,) in connection.execute(QUERIES[name], (last,))}
