"""The view of a ledger in SQLite: one read transaction."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import apsw
from msgspec.structs import replace

from batonpass.errors import EditedError
from batonpass.model.base.ids import RECEIPT, ContentId, first_id
from batonpass.model.base.lifecycle import HandoffEvent
from batonpass.model.ledger.content import Place, StoredContent
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.store import rows
from batonpass.store.port import ContentSizes, ReceiptQuery
from batonpass.store.sql_view import NOTHING, SqlView
from batonpass.store.sqlite.append import MOVES
from batonpass.store.sqlite.blobs import Blobs
from batonpass.store.sqlite.connection import translated
from batonpass.store.sqlite.leases import QUERIES as LEASING
from batonpass.store.sqlite.schema import find_alterations
from batonpass.store.sqlite.tail import QUERIES, find_misfiled
from batonpass.wire.canonical import encode_typed

Value = TypeVar("Value")

_LAST: Final = 2**63 - 1
_ENDING: Final = 4  # characters, as in the indexes
_NO_END: Final = "~"  # greater than any id
_NO_LIMIT: Final = -1
_BY_ENDING: Final = frozenset({"run", "handoff", "receipt"})

# The planner does not see the values, so a list that is narrowed by an indexed part has a statement of its own. The
# most selective part comes first.
_NARROWER: Final[Mapping[str, Mapping[str, str]]] = {
    "find_runs": {
        "session": "find_session",
        "series": "find_series",
        "parent": "find_children",
        "root": "find_runs_of_tree",
        "agent": "find_runs_of_agent",
        "roots": "find_roots",
    },
    "find_session": {"roots": "find_session_roots"},
    "find_handoffs": {
        "parent": "find_handoffs_of_run",
        "root": "find_handoffs_of_tree",
        "to": "find_handoffs_of_agent",
    },
    "find_rolled": {"agent": "find_rolled_of_agent", "task_kind": "find_rolled_of_kind"},
    "find_rolled_oldest_first": {
        "agent": "find_rolled_of_agent_oldest_first",
        "task_kind": "find_rolled_of_kind_oldest_first",
    },
}


class SqliteView(SqlView):
    """The ledger as it was at one moment. Belongs to one thread."""

    def __init__(self, connection: apsw.Connection, blobs: Blobs, path: Path) -> None:
        super().__init__(str(path))
        self._connection = connection
        self._blobs = blobs
        self._path = path

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place."""
        rows_kept, row_bytes, files, erased = self._first("content_sizes") or (0,) * 4
        return ContentSizes(
            rows=rows_kept, row_bytes=row_bytes, files=files, file_bytes=self._blobs.size(), erased=erased
        )

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts by position, which is the order in which they were written."""
        if query.unsequenced:
            return iter(())
        since = "" if query.since is None else first_id(RECEIPT, query.since)
        first = query.first or 1
        if since:
            row = self._first("first_position_since", {"since": since})
            first = max(first, _LAST if row is None else row[0])
        values: dict[str, object] = {
            "first": first,
            "last": _LAST if query.last is None else query.last,
            "since": since,
            "kind": query.kind,
            "but": f",{','.join(query.but)}," if query.but else "",
        }
        at = query.attempts_at
        if all(part is None for part in (query.stream, query.root, query.agent, query.streams, at)):
            return self._find("find_receipts", values, rows.receipt)
        values |= {"stream": query.stream, "root": query.root, "agent": query.agent}
        if query.streams is not None or at is not None:
            values["streams"] = self._list(query.streams or ())
            values |= {"parent": None, "handoff": None} if at is None else {"parent": at.parent, "handoff": at.id}
            return self._find("find_receipts_of_some_streams", values, rows.receipt)
        return self._find("find_receipts_of_streams", values, rows.receipt)

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids that exist."""
        return self._find("find_contents", {"ids": self._list(contents)}, self._content)

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed and that can still expire."""
        return self._find("find_overdue", MOVES[HandoffEvent.EXPIRE], rows.handoff)

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, ordered by handoff."""
        return map(rows.lease, self._rows(LEASING["find_leases"], NOTHING))

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the schema that somebody has changed."""
        try:
            yield from find_alterations(self._connection)
        except apsw.Error as error:
            raise translated(error, self._path) from None

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield each of our own index tables that contradicts the rows."""
        try:
            yield from find_misfiled(self._connection)
        except apsw.Error as error:
            raise translated(error, self._path) from None

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        if prefix in _BY_ENDING and len(ending) >= _ENDING:
            return self._find(f"find_{prefix}_ids_by_ending", {"ending": ending}, rows.identifier)
        return super().find_ids(prefix, ending)

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be about a call whose id has this ending."""
        if len(ending) < _ENDING:
            return self._find("find_all_call_receipts", NOTHING, rows.receipt)
        return self._find("find_call_receipts", {"ending": ending[-_ENDING:]}, rows.receipt)

    def _content(self, row: rows.Row) -> StoredContent:
        content = rows.content(row)
        return replace(content, body=self._blobs.read(content.id)) if content.place is Place.FILE else content

    def _size(self) -> int:
        return sum(file.stat().st_size for file in self._path.parent.glob(f"{self._path.name}*") if file.is_file())

    def _list(self, items: Collection[str]) -> str:
        return encode_typed(list(items)).decode()

    def _page(self, states: Collection[str], before: str | None, limit: int | None) -> dict[str, object]:
        return {
            "states": f",{','.join(states)}," if states else None,
            "before": _NO_END if before is None else before,
            "limit": _NO_LIMIT if limit is None else limit,
        }

    def _find(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        return map(make, self._rows(QUERIES[_narrowest(name, values)], values))

    def _first(self, name: str, values: Mapping[str, object] = NOTHING) -> rows.Row | None:
        try:
            cursor = self._connection.execute(QUERIES[name], values)
            row = cursor.fetchone()
            cursor.close()
        except apsw.Error as error:
            raise translated(error, self._path) from None
        except UnicodeDecodeError as error:
            raise EditedError(f"a column cannot be text: {error.reason}") from None
        return row

    def _rows(self, statement: str, values: Mapping[str, object]) -> Iterator[rows.Row]:
        try:
            yield from self._connection.execute(statement, values)
        except apsw.Error as error:
            raise translated(error, self._path) from None
        except UnicodeDecodeError as error:
            raise EditedError(f"a column cannot be text: {error.reason}") from None


def _narrowest(name: str, values: Mapping[str, object]) -> str:
    """Return the name of the statement that starts from the most selective of the given parts."""
    for part, narrower in _NARROWER.get(name, {}).items():
        if values[part] not in (None, False):
            return _narrowest(narrower, values)
    return name
