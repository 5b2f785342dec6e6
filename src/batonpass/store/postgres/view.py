"""The view of a ledger in PostgreSQL: one repeatable-read transaction, or a claim brief in its place."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Final, TypeVar

import psycopg

from batonpass.model.base.ids import RECEIPT, ContentId, StreamId, first_id
from batonpass.model.base.lifecycle import Carrier, HandoffEvent, sources
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.store import rows
from batonpass.store.port import ContentSizes, ReceiptQuery
from batonpass.store.postgres.arrays import TextArray
from batonpass.store.postgres.claim_brief import SMALL, ClaimBriefing
from batonpass.store.postgres.connections import QUERIES, STATEMENTS, Connection, Snapshot
from batonpass.store.postgres.failures import translated
from batonpass.store.postgres.leases import STATEMENTS as LEASING
from batonpass.store.postgres.schema import find_alterations
from batonpass.store.sql_view import NOTHING, SqlView

Value = TypeVar("Value")

_EXPIRING: Final = {
    carrier.value: [state.value for state in sources(HandoffEvent.EXPIRE, carrier)] for carrier in Carrier
}
_FETCHED_AT_ONCE: Final = 500
_CONTENTS_AT_ONCE: Final = 100

# How the rows of a statement are read: by a prepared statement whose plan is the same for all values; or all at once,
# some of them only in a list that somebody bounded; else through a cursor, because there may be any number.
_PREPARED: Final = frozenset(
    {
        "find_attempts",
        "find_cached",
        "find_charged",
        "find_decided_call",
        "find_held_call",
        "find_keys",
        "find_remarks",
        "find_rolled_handoffs",
        "find_rolled_with",
        "find_statements",
        "find_touches_of",
    }
)
_AT_ONCE: Final = frozenset({"find_held", "find_overdue", "find_seals", "find_touched_paths"})
_IF_BOUNDED: Final = frozenset(
    {"find_claimed", "find_handoffs", "find_handoffs_in_state", "find_ready", "find_runs", "find_runs_in_state"}
)
_BOUNDS: Final = ("root", "parent", "limit")


class PostgresView(SqlView):
    """The ledger as it was at one moment. Belongs to one thread."""

    def __init__(self, snapshot: Snapshot, where: str, briefing: ClaimBriefing | None = None) -> None:
        super().__init__(where)
        self._snapshot = snapshot
        self._briefing = briefing
        self._unfinished: set[psycopg.ServerCursor[rows.Row]] = set()
        self._names = count(1)

    def close(self) -> None:
        """Close cursors that were not read to the end: later, their connection may be lent to somebody else."""
        with self._translated():
            for cursor in self._unfinished:
                cursor.close()

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place."""
        kept, size, erased = self._first("content_sizes") or (0,) * 3
        return ContentSizes(rows=kept, row_bytes=size, files=0, file_bytes=0, erased=erased)

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts."""
        if query.stream is not None and query == ReceiptQuery(stream=query.stream, kind=query.kind):
            return self._of_stream(query.stream, query.kind)
        return self._find("find_receipts", _values(query), rows.receipt)

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids that exist."""
        if (known := self._known_contents(contents)) is not None:
            yield from known
            return
        for first in range(0, len(contents), _CONTENTS_AT_ONCE):
            ids = self._list(contents[first : first + _CONTENTS_AT_ONCE])
            for *row, large in self._rows("find_contents", {"ids": ids, "most": SMALL}):
                yield self.get_content(row[0]) if large else rows.content(tuple(row))

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed and that can still expire."""
        return self._find("find_overdue", _EXPIRING, rows.handoff)

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, ordered by handoff."""
        with self._translated():
            return map(rows.lease, self._moment().ask(LEASING["find_leases"], NOTHING))

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the schema that somebody has changed."""
        with self._translated():
            yield from self._moment().run(lambda connection: list(find_alterations(connection)))

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: PostgreSQL keeps all its indexes itself."""
        return iter(())

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be about a call whose id has this ending."""
        return self._find("find_call_receipts", {"ending": ending}, rows.receipt)

    def _of_stream(self, stream: StreamId, kind: str | None) -> Iterator[StoredReceipt]:
        """Yield the receipts of a stream by seq. Most streams are short, so one statement mostly reads all of it."""
        seq = 0
        while True:
            values = {"stream": stream, "kind": kind, "after": seq, "most": _FETCHED_AT_ONCE}
            found = self._rows("find_receipts_of_stream", values)
            yield from map(rows.receipt, found)
            if len(found) < _FETCHED_AT_ONCE:
                return
            seq = found[-1][3]

    def _first(self, name: str, values: Mapping[str, object] = NOTHING) -> rows.Row | None:
        found = self._rows(name, values)
        return found[0] if found else None

    def _find(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        if name in _PREPARED:
            return map(make, self._rows(name, values))
        bounded = name in _IF_BOUNDED and any(values[part] is not None for part in _BOUNDS)
        return (self._all if bounded or name in _AT_ONCE else self._stream)(name, values, make)

    def _list(self, items: Collection[str]) -> TextArray:
        return TextArray(list(items))

    def _page(self, states: Collection[str], before: str | None, limit: int | None) -> dict[str, object]:
        return {"states": list(states) or None, "before": before, "limit": limit}

    def _size(self) -> int:
        row = self._first("size")
        return 0 if row is None else int(row[0])

    def _rows(self, name: str, values: Mapping[str, object]) -> Sequence[rows.Row]:
        # Called more often than anything else here: no context manager, and no function that only delegates.
        try:
            if self._briefing is not None:
                found = self._briefing.answers(self._snapshot).get((name, *values.values()))
                if found is not None:
                    return found
            return self._moment().ask(STATEMENTS[name], values)
        except psycopg.Error as error:
            raise translated(error, self._where) from None

    def _moment(self) -> Snapshot:
        """Return the snapshot, after checking that the claim brief is still true in it. Raises `StaleHeadError`."""
        if self._briefing is not None:
            self._briefing.confirm(self._snapshot)
        return self._snapshot

    def _known_contents(self, contents: Sequence[ContentId]) -> list[StoredContent] | None:
        """Return the contents from the claim brief; None if one of them is not in it."""
        if self._briefing is None:
            return None
        with self._translated():
            told = self._briefing.answers(self._snapshot)
        found = [told.get(("get_content", content)) for content in contents]
        return None if None in found else [rows.content(row) for each in found if each for row in each]

    def _all(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        """Read all rows at once, where one tree or ledger has few of them.

        Not prepared: the plan depends on the values.
        """

        def read(connection: Connection) -> list[rows.Row]:
            return connection.execute(QUERIES[name], values, prepare=False, binary=True).fetchall()

        with self._translated():
            return map(make, self._moment().run(read))

    def _stream(
        self,
        name: str,
        values: Mapping[str, object],
        make: Callable[[rows.Row], Value],
    ) -> Iterator[Value]:
        """Read through a server-side cursor: yielded rows are not kept, and other reads can go on meanwhile."""

        def opened(connection: Connection) -> psycopg.ServerCursor[rows.Row]:
            with ExitStack() as unless_read:
                cursor = unless_read.enter_context(connection.cursor(f"find_{next(self._names)}", binary=True))
                cursor.itersize = _FETCHED_AT_ONCE
                cursor.execute(QUERIES[name], values)
                unless_read.pop_all()
            return cursor

        with self._translated(), self._moment().run(opened) as cursor:
            self._unfinished.add(cursor)
            for row in cursor:
                yield make(row)
            self._unfinished.discard(cursor)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise translated(error, self._where) from None


def _values(query: ReceiptQuery) -> dict[str, object]:
    return {
        "stream": query.stream,
        "streams": None if query.streams is None else list(query.streams),
        "attempts_at": None if query.attempts_at is None else query.attempts_at.id,
        "attempts_from": None if query.attempts_at is None else query.attempts_at.parent,
        "root": query.root,
        "kind": query.kind,
        "but": list(query.but) or None,
        "agent": query.agent,
        "since": None if query.since is None else first_id(RECEIPT, query.since),
        "first": query.first,
        "last": query.last,
        "unsequenced": query.unsequenced,
    }
