"""Reading one moment of a ledger in PostgreSQL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final, TypeVar

import psycopg

from batonpass.errors import NotALedgerError, NotFoundError
from batonpass.model.charge import Charged
from batonpass.model.content import StoredContent
from batonpass.model.ids import (
    RECEIPT,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
    first_id,
)
from batonpass.model.key import Key
from batonpass.model.lease import Lease
from batonpass.model.lifecycle import Carrier, Event, sources
from batonpass.model.receipt import StoredReceipt
from batonpass.model.remark import Remark, Said
from batonpass.model.run import Cached, DecidedCall, Handoff, HeldCall, Run, Stated
from batonpass.model.seal import Seal
from batonpass.model.stream import Stream
from batonpass.store import rows
from batonpass.store.port import Counts, LedgerInfo, ReceiptQuery, Touched
from batonpass.store.postgres.connections import QUERIES, Connection
from batonpass.store.postgres.failures import translated
from batonpass.store.postgres.leasing import QUERIES as LEASING
from batonpass.store.postgres.parts import find_alterations

Value = TypeVar("Value")

_NOTHING: Final[Mapping[str, object]] = {}
_EXPIRING: Final = {carrier.value: [state.value for state in sources(Event.EXPIRE, carrier)] for carrier in Carrier}
_FETCHED_AT_ONCE: Final = 500
_BODIES_AT_ONCE: Final = 8  # of up to 16 MiB


class PostgresView:
    """Everything as it was at one moment. Belongs to one thread."""

    def __init__(self, connection: Connection, where: str) -> None:
        self._connection = connection
        self._where = where
        self._unfinished: set[psycopg.ServerCursor[rows.Row]] = set()
        self._names = count(1)

    def close(self) -> None:
        """End what was not read to its end: a cursor must not be closed when its connection is lent to others."""
        with self._translated():
            for cursor in self._unfinished:
                cursor.close()

    def info(self) -> LedgerInfo:
        """Return who this ledger is."""
        row = self._first("read_ledger")
        if row is None:
            raise NotALedgerError(f"nothing has been recorded in {self._where} yet")
        return rows.info(row)

    def counts(self) -> Counts:
        """Return how much there is."""
        receipts, streams, runs, handoffs, contents, seals, size = self._first("counts") or (0,) * 7
        return Counts(
            receipts=receipts,
            streams=streams,
            runs=runs,
            handoffs=handoffs,
            contents=contents,
            seals=seals,
            bytes=size,
        )

    def get_stream(self, stream: StreamId) -> Stream:
        """Return where a stream stands."""
        return self._get("get_stream", stream, rows.stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        return self._stream("find_streams", _NOTHING, rows.stream)

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._receipt(receipt, {"id": receipt})

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return one receipt by its place in its stream."""
        return self._receipt(f"{seq} of {stream}", {"stream": stream, "seq": seq})

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts."""
        return self._stream("find_receipts", _values(query), rows.receipt)

    def last_position(self) -> int:
        """Return the position of the last sequenced receipt."""
        row = self._first("last_position")
        return 0 if row is None else int(row[0])

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return self._get("get_content", content, rows.content, "content")

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield those of these contents that are there."""
        values = {"ids": list(contents)}
        return self._stream("find_contents", values, rows.content, at_once=_BODIES_AT_ONCE)

    def find_content_ids(self) -> Iterator[ContentId]:
        """Yield the ids of all contents."""
        return self._stream("find_content_ids", _NOTHING, lambda row: ContentId(row[0]))

    def get_run(self, run: RunId) -> Run:
        """Return one run."""
        return self._get("get_run", run, rows.run, "run")

    def find_runs(
        self,
        *,
        agent: AgentId | None = None,
        root: RunId | None = None,
        parent: RunId | None = None,
        series: str | None = None,
        session: SessionId | None = None,
    ) -> Iterator[Run]:
        """Yield runs, the latest first."""
        read = self._stream if root is None and parent is None else self._all
        values = {"agent": agent, "root": root, "parent": parent, "series": series, "session": session}
        return read("find_runs", values, rows.run)

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of the attempts at a handoff, the first first."""
        return self._all("find_attempts", {"parent": handoff.parent, "handoff": handoff.id}, rows.run)

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff."""
        return self._get("get_handoff", handoff, rows.handoff, "handoff")

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered under a key in a scope."""
        row = self._first("get_offer", {"scope": scope, "key": key})
        if row is None:
            raise NotFoundError("offer", f"{key} in {scope}")
        return rows.handoff(row)

    def find_handoffs(self, *, root: RunId | None = None, parent: RunId | None = None) -> Iterator[Handoff]:
        """Yield handoffs, the latest first."""
        read = self._stream if root is None and parent is None else self._all
        return read("find_handoffs", {"root": root, "parent": parent}, rows.handoff)

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed."""
        return self._all("find_overdue", _EXPIRING, rows.handoff)

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that wait for somebody to let them go on, oldest first."""
        return self._all("find_held", {}, rows.handoff)

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield what humans said they want, in the order in which it was recorded."""
        read = self._stream if root is None else self._all
        return read("find_statements", {"root": root}, rows.stated)

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the changes that were recorded under a path, the latest first, or all."""
        if path is None:
            return self._stream("find_all_touches", _NOTHING, rows.touched)
        return self._stream("find_touches", {"path": path}, rows.touched)

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the paths under which these contents were recorded."""
        return self._all("find_touches_of", {"ids": list(contents)}, rows.touched)

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths that end so."""
        return self._all("find_touched_paths", {"ending": ending}, rows.path)

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the results that are kept under a key, the latest first, or all."""
        if key is None:
            return self._stream("find_all_cached", _NOTHING, rows.cached)
        return self._all("find_cached", {"key": key}, rows.cached)

    def find_charged(self, account: StreamId | None = None) -> Iterator[Charged]:
        """Yield what is used up of an account, or of all."""
        if account is None:
            return self._stream("find_all_charged", _NOTHING, rows.charged)
        return self._all("find_charged", {"account": account}, rows.charged)

    def find_held_calls(self) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their runs went on, oldest first."""
        return self._stream("find_held_calls", _NOTHING, rows.held_call)

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the calls of open roots that wait for somebody to let them be made, oldest first."""
        return self._stream("find_waiting_calls", _NOTHING, rows.held_call)

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield what was decided about such a call, or about all, oldest first."""
        if call is None:
            return self._stream("find_decided_calls", _NOTHING, rows.decided_call)
        return self._all("find_decided_call", {"call": call}, rows.decided_call)

    def find_remarks(self, said: Said | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield what is said about something, the latest first."""
        if said is None:
            return self._stream("find_all_remarks", _NOTHING, rows.remark)
        if name is None:
            return self._stream("find_remarks_of_kind", {"said": said}, rows.remark)
        return self._all("find_remarks", {"said": said, "name": name}, rows.remark)

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that are held."""
        with self._translated():
            return map(rows.lease, self._connection.execute(LEASING["find_leases"], binary=True).fetchall())

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        return self._all("find_keys", _NOTHING, rows.key)

    def find_seals(self) -> Iterator[Seal]:
        """Yield seals by size."""
        return self._all("find_seals", _NOTHING, rows.seal)

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield what somebody has changed in the schema."""
        with self._translated():
            yield from find_alterations(self._connection)

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        return self._stream("find_ids", {"prefix": prefix, "ending": ending}, rows.identifier)

    def _receipt(self, given: str, place: Mapping[str, object]) -> StoredReceipt:
        found = next(self._all("find_receipts", {**_values(ReceiptQuery()), **place}, rows.receipt), None)
        if found is None:
            raise NotFoundError("receipt", given)
        return found

    def _get(self, name: str, given: str, make: Callable[[rows.Row], Value], what: str) -> Value:
        row = self._first(name, {"id": given})
        if row is None:
            raise NotFoundError(what, given)
        return make(row)

    def _first(self, name: str, values: Mapping[str, object] = _NOTHING) -> rows.Row | None:
        with self._translated():
            return self._connection.execute(QUERIES[name], values, prepare=True, binary=True).fetchone()

    def _all(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        """Read at once what one tree or one ledger has only so many of."""
        with self._translated():
            return map(make, self._connection.execute(QUERIES[name], values, prepare=False, binary=True).fetchall())

    def _stream(
        self,
        name: str,
        values: Mapping[str, object],
        make: Callable[[rows.Row], Value],
        *,
        at_once: int = _FETCHED_AT_ONCE,
    ) -> Iterator[Value]:
        """Read through a cursor of the server: nothing that was yielded is held, and other reading can go on."""
        with self._translated(), self._connection.cursor(f"find_{next(self._names)}", binary=True) as cursor:
            self._unfinished.add(cursor)
            cursor.itersize = at_once
            for row in cursor.execute(QUERIES[name], values):
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
        "id": None,
        "seq": None,
        "stream": query.stream,
        "root": query.root,
        "kind": query.kind,
        "agent": query.agent,
        "since": None if query.since is None else first_id(RECEIPT, query.since),
        "first": query.first,
        "last": query.last,
        "unsequenced": query.unsequenced,
    }
