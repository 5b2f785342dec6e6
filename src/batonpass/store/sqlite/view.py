"""The view of a ledger in SQLite: one read transaction."""

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
from msgspec.structs import replace

from batonpass.errors import EditedError, NotALedgerError, NotFoundError
from batonpass.model.base.ids import (
    CONTENT,
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
from batonpass.model.base.lifecycle import HandoffEvent, State
from batonpass.model.grants.charge import Charged
from batonpass.model.ledger.content import Place, StoredContent
from batonpass.model.ledger.key import Key
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream
from batonpass.store import rows
from batonpass.store.port import ContentSizes, Counts, LedgerInfo, ReceiptQuery, Touched
from batonpass.store.sqlite.append import MOVES
from batonpass.store.sqlite.blobs import Blobs
from batonpass.store.sqlite.connection import translated
from batonpass.store.sqlite.leases import QUERIES as LEASING
from batonpass.store.sqlite.schema import find_alterations
from batonpass.store.sqlite.tail import QUERIES, find_misfiled
from batonpass.wire.canonical import encode_typed

Value = TypeVar("Value")
Parameters = Mapping[str, object] | Sequence[object]

Listed = TypeVar("Listed", Run, Handoff)

_LAST: Final = 2**63 - 1
_ENDING: Final = 4  # characters, as in the indexes
_NO_END: Final = "~"  # greater than any id
_NO_LIMIT: Final = -1
_ON_A_LEASE: Final = {State.READY: "find_ready", State.CLAIMED: "find_claimed"}
_IDS: Final = {
    "run": QUERIES["find_run_ids"],
    "handoff": QUERIES["find_handoff_ids"],
    "receipt": QUERIES["find_receipt_ids"],
    "content": QUERIES["find_content_ids"],
    "relay": QUERIES["find_relay_ids"],
    "session": QUERIES["find_session_ids"],
}
_IDS_BY_ENDING: Final = {
    "run": QUERIES["find_run_ids_by_ending"],
    "handoff": QUERIES["find_handoff_ids_by_ending"],
    "receipt": QUERIES["find_receipt_ids_by_ending"],
}


class SqliteView:
    """The ledger as it was at one moment. Belongs to one thread."""

    def __init__(self, connection: apsw.Connection, blobs: Blobs, path: Path) -> None:
        self._connection = connection
        self._blobs = blobs
        self._path = path

    def info(self) -> LedgerInfo:
        """Return the identity of this ledger. Raises `NotALedgerError`."""
        row = self._first("read_ledger", ())
        if row is None:
            raise NotALedgerError(f"nothing has been recorded in {self._path} yet")
        return rows.info(row)

    def counts(self) -> Counts:
        """Return the number of rows of each sort."""
        row = self._first("counts", ())
        receipts, streams, runs, handoffs, contents, seals = row or (0,) * 6
        size = sum(file.stat().st_size for file in self._path.parent.glob(f"{self._path.name}*") if file.is_file())
        return Counts(
            receipts=receipts,
            streams=streams,
            runs=runs,
            handoffs=handoffs,
            contents=contents,
            seals=seals,
            bytes=size,
        )

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place."""
        rows_kept, row_bytes, files, erased = self._first("content_sizes", ()) or (0,) * 4
        return ContentSizes(
            rows=rows_kept, row_bytes=row_bytes, files=files, file_bytes=self._blobs.size(), erased=erased
        )

    def get_stream(self, stream: StreamId) -> Stream:
        """Return one stream."""
        return self._get("get_stream", stream, rows.stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        return self._find("find_streams", (), rows.stream)

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._get("get_receipt", receipt, rows.receipt, "receipt")

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return the receipt with this seq in a stream."""
        row = self._first("get_receipt_at", (stream, seq))
        if row is None:
            raise NotFoundError("receipt", f"{seq} of {stream}")
        return rows.receipt(row)

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts by position, which is the order in which they were written."""
        if query.unsequenced:
            return iter(())
        since = "" if query.since is None else first_id(RECEIPT, query.since)
        first = query.first or 1
        if since:
            row = self._first("first_position_since", (since,))
            first = max(first, _LAST if row is None else row[0])
        values = {
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
            values["streams"] = encode_typed(query.streams or ()).decode()
            values |= {"parent": None, "handoff": None} if at is None else {"parent": at.parent, "handoff": at.id}
            return self._find("find_receipts_of_some_streams", values, rows.receipt)
        return self._find("find_receipts_of_streams", values, rows.receipt)

    def last_position(self) -> int:
        """Return the position of the last receipt."""
        row = self._first("last_position", ())
        return 0 if row is None else int(row[0])

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return self._get("get_content", content, self._content, "content")

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids that exist."""
        return self._find("find_contents", (encode_typed(list(contents)).decode(),), self._content)

    def find_content_ids(self) -> Iterator[ContentId]:
        """Yield the ids of all contents."""
        return map(ContentId, self.find_ids(CONTENT, ""))

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
        states: Collection[RunState] = (),
        roots: bool = False,
        before: RunId | None = None,
        limit: int | None = None,
    ) -> Iterator[Run]:
        """Yield runs, the latest first."""
        values: dict[str, object] = {
            "agent": agent,
            "root": root,
            "parent": parent,
            "series": series,
            "session": session,
            "roots": roots,
            **_page(states, before, limit),
        }
        narrowed = {
            "find_session_roots" if roots else "find_session": session,
            "find_series": series,
            "find_children": parent,
            "find_runs_of_tree": root,
            "find_runs_of_agent": agent,
        }
        name = next((name for name, given in narrowed.items() if given is not None), None)
        if name is not None:
            return self._find(name, values, rows.run)
        if states:
            return self._merge([("find_runs_in_state", state) for state in sorted(states)], values, rows.run)
        return self._find("find_roots" if roots else "find_runs", values, rows.run)

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of a handoff in order of their attempt numbers."""
        return self._find("find_attempts", {"parent": handoff.parent, "handoff": handoff.id}, rows.run)

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff."""
        return self._get("get_handoff", handoff, rows.handoff, "handoff")

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered in a scope with this offer key."""
        row = self._first("get_offer", (scope, key))
        if row is None:
            raise NotFoundError("offer", f"{key} in {scope}")
        return rows.handoff(row)

    def find_handoffs(
        self,
        *,
        root: RunId | None = None,
        parent: RunId | None = None,
        to: AgentId | None = None,
        states: Collection[State] = (),
        before: HandoffId | None = None,
        limit: int | None = None,
    ) -> Iterator[Handoff]:
        """Yield handoffs, the latest first."""
        values: dict[str, object] = {"root": root, "parent": parent, "to": to, **_page(states, before, limit)}
        narrowed = {"find_handoffs_of_run": parent, "find_handoffs_of_tree": root, "find_handoffs_of_agent": to}
        name = next((name for name, given in narrowed.items() if given is not None), None)
        if name is None and states:
            queries = [(_ON_A_LEASE.get(state, "find_handoffs_in_state"), state) for state in sorted(states)]
            return self._merge(queries, values, rows.handoff)
        return self._find(name or "find_handoffs", values, rows.handoff)

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed and that can still expire."""
        return self._find("find_overdue", MOVES[HandoffEvent.EXPIRE], rows.handoff)

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that are held and wait for a ruling, oldest first."""
        return self._find("find_held", {}, rows.handoff)

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield the statements of humans, in the order in which they were recorded."""
        name = "find_statements" if root is None else "find_statements_of_tree"
        return self._find(name, {"root": root}, rows.stated)

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the recorded changes of a path, the latest first, or all."""
        if path is None:
            return self._find("find_all_touches", (), rows.touched)
        return self._find("find_touches", (path,), rows.touched)

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the recorded changes that these contents hold."""
        return self._find("find_touches_of", (encode_typed(list(contents)).decode(),), rows.touched)

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths of recorded changes with this ending."""
        return self._find("find_touched_paths", (ending,), rows.path)

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the cached results under a key, the latest first, or all."""
        if key is None:
            return self._find("find_all_cached", (), rows.cached)
        return self._find("find_cached", (key,), rows.cached)

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield the amounts that are charged to these accounts, or to all."""
        if accounts is None:
            return self._find("find_all_charged", (), rows.charged)
        return self._find("find_charged", (encode_typed([*accounts]).decode(),), rows.charged)

    def find_held_calls(self, call: CallId | None = None) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their run went on, oldest first; or only this one."""
        if call is None:
            return self._find("find_held_calls", (), rows.held_call)
        return self._find("find_held_call", (call,), rows.held_call)

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the held calls of open runs without a ruling, oldest first."""
        return self._find("find_waiting_calls", (), rows.held_call)

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield the ruling about a held call, or all of them, oldest first."""
        if call is None:
            return self._find("find_decided_calls", (), rows.decided_call)
        return self._find("find_decided_call", (call,), rows.decided_call)

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield the remarks of a kind, about a name or about any, the latest first."""
        if said is None:
            return self._find("find_all_remarks", (), rows.remark)
        if name is None:
            return self._find("find_remarks_of_kind", (said,), rows.remark)
        return self._find("find_remarks", (said, name), rows.remark)

    def rolled(self) -> RollupMark:
        """Return how far the roll-ups go."""
        row = self._first("read_rolled", ())
        return RollupMark() if row is None else rows.rollup_mark(row)

    def find_rolled(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs that are rolled up, the latest first, or the oldest."""
        return self._find(rows.rolled_name(query), rows.rolled_values(query, no_limit=_NO_LIMIT), rows.rolled_handoff)

    def find_rolled_handoffs(self, handoffs: Sequence[HandoffId]) -> Iterator[RolledHandoff]:
        """Yield these handoffs, as far as they are rolled up."""
        return self._find("find_rolled_handoffs", (encode_typed(list(handoffs)).decode(),), rows.rolled_handoff)

    def find_rolled_with(self, contents: Sequence[ContentId]) -> Iterator[RolledHandoff]:
        """Yield the handoffs whose roll-up has words of one of these contents."""
        return self._find("find_rolled_with", (encode_typed(list(contents)).decode(),), rows.rolled_handoff)

    def find_rolled_days(self, first: str, last: str, *, agent: AgentId | None = None) -> Iterator[RolledDay]:
        """Yield the sums from one day up to and including another."""
        if agent is None:
            return self._find("find_rolled_days", (first, last), rows.rolled_day)
        return self._find("find_rolled_days_of_agent", (agent, first, last), rows.rolled_day)

    def get_rolled_day(self, day: RolledDay) -> RolledDay:
        """Return the sum as the store has it; with an empty body if there is none."""
        row = self._first("get_rolled_day", day.id)
        return replace(day, body=b"") if row is None else rows.rolled_day(row)

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, ordered by handoff."""
        return map(rows.lease, self._rows(LEASING["find_leases"], ()))

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        return self._find("find_keys", (), rows.key)

    def find_seals(self) -> Iterator[Seal]:
        """Yield the seals in order of size."""
        return self._find("find_seals", (), rows.seal)

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
        by_ending = _IDS_BY_ENDING.get(prefix) if len(ending) >= _ENDING else None
        return map(rows.identifier, self._rows(by_ending or _IDS[prefix], (ending,)))

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be about a call whose id has this ending."""
        if len(ending) < _ENDING:
            return self._find("find_all_call_receipts", (), rows.receipt)
        return self._find("find_call_receipts", (ending[-_ENDING:],), rows.receipt)

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield requests of calls without an outcome."""
        return self._find("find_open_requests", {"runs": runs, "of_each": of_each, "most": most}, rows.receipt)

    def _content(self, row: tuple[Any, ...]) -> StoredContent:
        content = rows.content(row)
        return replace(content, body=self._blobs.read(content.id)) if content.place is Place.FILE else content

    def _get(self, name: str, given: str, make: Callable[[tuple[Any, ...]], Value], what: str) -> Value:
        row = self._first(name, (given,))
        if row is None:
            raise NotFoundError(what, given)
        return make(row)

    def _find(self, name: str, values: Parameters, make: Callable[[tuple[Any, ...]], Value]) -> Iterator[Value]:
        return map(make, self._rows(QUERIES[name], values))

    def _merge(
        self, queries: Sequence[tuple[str, str]], values: Mapping[str, object], make: Callable[[rows.Row], Listed]
    ) -> Iterator[Listed]:
        """Merge the results of one query per state, the latest first. Each query comes in the order of its index."""
        found = [self._find(name, {**values, "state": state}, make) for name, state in queries]
        merged = heapq.merge(*found, key=lambda value: value.id, reverse=True)
        limit = values["limit"]
        return islice(merged, limit) if isinstance(limit, int) and limit >= 0 else merged

    def _first(self, name: str, values: Parameters) -> tuple[Any, ...] | None:
        try:
            cursor = self._connection.execute(QUERIES[name], values)
            row = cursor.fetchone()
            cursor.close()
        except apsw.Error as error:
            raise translated(error, self._path) from None
        except UnicodeDecodeError as error:
            raise EditedError(f"a column cannot be text: {error.reason}") from None
        return row

    def _rows(self, statement: str, values: Parameters) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(statement, values)
        except apsw.Error as error:
            raise translated(error, self._path) from None
        except UnicodeDecodeError as error:
            raise EditedError(f"a column cannot be text: {error.reason}") from None


def _page(states: Collection[str], before: str | None, limit: int | None) -> dict[str, object]:
    return {
        "states": f",{','.join(states)}," if states else None,
        "before": _NO_END if before is None else before,
        "limit": _NO_LIMIT if limit is None else limit,
    }
