"""The view of a ledger in PostgreSQL: one repeatable-read transaction, or a claim brief in its place."""

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Final, TypeVar

import psycopg
from msgspec.structs import asdict, replace

from batonpass.errors import NotALedgerError, NotFoundError
from batonpass.model.base.ids import (
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
from batonpass.model.base.lifecycle import Carrier, HandoffEvent, State, sources
from batonpass.model.grants.charge import Charged
from batonpass.model.ledger.content import StoredContent
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
from batonpass.store.postgres.arrays import TextArray
from batonpass.store.postgres.claim_brief import SMALL, ClaimBriefing
from batonpass.store.postgres.connections import QUERIES, STATEMENTS, Snapshot
from batonpass.store.postgres.failures import translated
from batonpass.store.postgres.leases import STATEMENTS as LEASING
from batonpass.store.postgres.schema import find_alterations

Value = TypeVar("Value")
Listed = TypeVar("Listed", Run, Handoff)

_NOTHING: Final[Mapping[str, object]] = {}
_EXPIRING: Final = {
    carrier.value: [state.value for state in sources(HandoffEvent.EXPIRE, carrier)] for carrier in Carrier
}
_FETCHED_AT_ONCE: Final = 500
_CONTENTS_AT_ONCE: Final = 100
_ON_A_LEASE: Final = {State.READY: "find_ready", State.CLAIMED: "find_claimed"}
_IDS: Final = {
    "run": "find_run_ids",
    "handoff": "find_handoff_ids",
    "receipt": "find_receipt_ids",
    "content": "find_content_ids_ending",
    "relay": "find_relay_ids",
    "session": "find_session_ids",
}


class PostgresView:
    """The ledger as it was at one moment. Belongs to one thread."""

    def __init__(self, snapshot: Snapshot, where: str, briefing: ClaimBriefing | None = None) -> None:
        self._snapshot = snapshot
        self._briefing = briefing
        self._where = where
        self._unfinished: set[psycopg.ServerCursor[rows.Row]] = set()
        self._names = count(1)

    def close(self) -> None:
        """Close cursors that were not read to the end: later, their connection may be lent to somebody else."""
        with self._translated():
            for cursor in self._unfinished:
                cursor.close()

    def info(self) -> LedgerInfo:
        """Return the identity of this ledger. Raises `NotALedgerError`."""
        row = self._first("read_ledger")
        if row is None:
            raise NotALedgerError(f"nothing has been recorded in {self._where} yet")
        return rows.info(row)

    def counts(self) -> Counts:
        """Return the number of rows of each sort."""
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

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place."""
        kept, size, erased = self._first("content_sizes") or (0,) * 3
        return ContentSizes(rows=kept, row_bytes=size, files=0, file_bytes=0, erased=erased)

    def get_stream(self, stream: StreamId) -> Stream:
        """Return one stream."""
        return self._get("get_stream", stream, rows.stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        return self._stream("find_streams", _NOTHING, rows.stream)

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._get("get_receipt", receipt, rows.receipt, "receipt")

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return the receipt with this seq in a stream."""
        row = self._first("get_receipt_at", {"stream": stream, "seq": seq})
        if row is None:
            raise NotFoundError("receipt", f"{seq} of {stream}")
        return rows.receipt(row)

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts."""
        if query.stream is not None and query == ReceiptQuery(stream=query.stream, kind=query.kind):
            return self._of_stream(query.stream, query.kind)
        return self._stream("find_receipts", _values(query), rows.receipt)

    def last_position(self) -> int:
        """Return the position of the last sequenced receipt."""
        row = self._first("last_position")
        return 0 if row is None else int(row[0])

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return self._get("get_content", content, rows.content, "content")

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids that exist."""
        if (known := self._known_contents(contents)) is not None:
            yield from known
            return
        for first in range(0, len(contents), _CONTENTS_AT_ONCE):
            ids = TextArray(contents[first : first + _CONTENTS_AT_ONCE])
            for *row, large in self._rows("find_contents", {"ids": ids, "most": SMALL}):
                yield self.get_content(row[0]) if large else rows.content(tuple(row))

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
        at_once = not (root is None and parent is None and limit is None)
        if states and {agent, root, parent, series, session} == {None}:
            queries = [("find_runs_in_state", {**values, "state": state}) for state in sorted(states)]
            return self._merge(queries, rows.run, limit)
        return (self._all if at_once else self._stream)("find_runs", values, rows.run)

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of a handoff in order of their attempt numbers."""
        return self._asked("find_attempts", {"parent": handoff.parent, "handoff": handoff.id}, rows.run)

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff."""
        return self._get("get_handoff", handoff, rows.handoff, "handoff")

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered in a scope with this offer key."""
        row = self._first("get_offer", {"scope": scope, "key": key})
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
        at_once = not (root is None and parent is None and limit is None)
        if states and {root, parent, to} == {None}:
            queries = [
                (_ON_A_LEASE.get(state, "find_handoffs_in_state"), {**values, "state": state})
                for state in sorted(states)
            ]
            return self._merge(queries, rows.handoff, limit)
        return (self._all if at_once else self._stream)("find_handoffs", values, rows.handoff)

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed and that can still expire."""
        return self._all("find_overdue", _EXPIRING, rows.handoff)

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that are held and wait for a ruling, oldest first."""
        return self._all("find_held", {}, rows.handoff)

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield the statements of humans, in the order in which they were recorded."""
        if root is None:
            return self._stream("find_all_statements", _NOTHING, rows.stated)
        return self._asked("find_statements", {"root": root}, rows.stated)

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the recorded changes of a path, the latest first, or all."""
        if path is None:
            return self._stream("find_all_touches", _NOTHING, rows.touched)
        return self._stream("find_touches", {"path": path}, rows.touched)

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the recorded changes that these contents hold."""
        return self._all("find_touches_of", {"ids": list(contents)}, rows.touched)

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths of recorded changes with this ending."""
        return self._all("find_touched_paths", {"ending": ending}, rows.path)

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the cached results under a key, the latest first, or all."""
        if key is None:
            return self._stream("find_all_cached", _NOTHING, rows.cached)
        return self._asked("find_cached", {"key": key}, rows.cached)

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield the amounts that are charged to these accounts, or to all."""
        if accounts is None:
            return self._stream("find_all_charged", _NOTHING, rows.charged)
        return self._asked("find_charged", {"accounts": TextArray(list(accounts))}, rows.charged)

    def find_held_calls(self, call: CallId | None = None) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their run went on, oldest first; or only this one."""
        if call is None:
            return self._stream("find_held_calls", _NOTHING, rows.held_call)
        return self._asked("find_held_call", {"call": call}, rows.held_call)

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the held calls of open runs without a ruling, oldest first."""
        return self._stream("find_waiting_calls", _NOTHING, rows.held_call)

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield the ruling about a held call, or all of them, oldest first."""
        if call is None:
            return self._stream("find_decided_calls", _NOTHING, rows.decided_call)
        return self._asked("find_decided_call", {"call": call}, rows.decided_call)

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield the remarks of a kind, about a name or about any, the latest first."""
        if said is None:
            return self._stream("find_all_remarks", _NOTHING, rows.remark)
        if name is None:
            return self._stream("find_remarks_of_kind", {"said": said}, rows.remark)
        return self._asked("find_remarks", {"said": said, "name": name}, rows.remark)

    def rolled(self) -> RollupMark:
        """Return how far the roll-ups go."""
        row = self._first("read_rolled", _NOTHING)
        return RollupMark() if row is None else rows.rollup_mark(row)

    def find_rolled(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs that are rolled up, the latest first, or the oldest."""
        return self._stream(rows.rolled_name(query), rows.rolled_values(query, no_limit=None), rows.rolled_handoff)

    def find_rolled_handoffs(self, handoffs: Sequence[HandoffId]) -> Iterator[RolledHandoff]:
        """Yield these handoffs, as far as they are rolled up."""
        return self._all("find_rolled_handoffs", {"handoffs": list(handoffs)}, rows.rolled_handoff)

    def find_rolled_with(self, contents: Sequence[ContentId]) -> Iterator[RolledHandoff]:
        """Yield the handoffs whose roll-up has words of one of these contents."""
        return self._all("find_rolled_with", {"contents": list(contents)}, rows.rolled_handoff)

    def find_rolled_days(self, first: str, last: str, *, agent: AgentId | None = None) -> Iterator[RolledDay]:
        """Yield the sums from one day up to and including another."""
        name = "find_rolled_days" if agent is None else "find_rolled_days_of_agent"
        return self._stream(name, {"agent": agent, "first": first, "last": last}, rows.rolled_day)

    def get_rolled_day(self, day: RolledDay) -> RolledDay:
        """Return the sum as the store has it; with an empty body if there is none."""
        row = self._first("get_rolled_day", asdict(day))
        return replace(day, body=b"") if row is None else rows.rolled_day(row)

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, ordered by handoff."""
        with self._translated():
            return map(rows.lease, self._moment().ask(LEASING["find_leases"], _NOTHING))

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        return self._asked("find_keys", _NOTHING, rows.key)

    def find_seals(self) -> Iterator[Seal]:
        """Yield the seals in order of size."""
        return self._all("find_seals", _NOTHING, rows.seal)

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the schema that somebody has changed."""
        with self._translated():
            yield from find_alterations(self._moment().connection)

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: PostgreSQL keeps all its indexes itself."""
        return iter(())

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        return self._stream(_IDS[prefix], {"ending": ending}, rows.identifier)

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be about a call whose id has this ending."""
        return self._stream("find_call_receipts", {"ending": ending}, rows.receipt)

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield requests of calls without an outcome."""
        return self._stream("find_open_requests", {"runs": runs, "of_each": of_each, "most": most}, rows.receipt)

    def _merge(
        self,
        queries: Sequence[tuple[str, Mapping[str, object]]],
        make: Callable[[rows.Row], Listed],
        limit: int | None,
    ) -> Iterator[Listed]:
        """Merge the results of one query per state, the latest first. Each query comes in the order of its index."""
        read = self._stream if limit is None else self._all
        found = [read(name, values, make) for name, values in queries]
        return islice(heapq.merge(*found, key=lambda value: value.id, reverse=True), limit)

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

    def _get(self, name: str, given: str, make: Callable[[rows.Row], Value], what: str) -> Value:
        found = self._rows(name, {"id": given})
        if not found:
            raise NotFoundError(what, given)
        return make(found[0])

    def _first(self, name: str, values: Mapping[str, object] = _NOTHING) -> rows.Row | None:
        found = self._rows(name, values)
        return found[0] if found else None

    def _asked(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        """Run a prepared statement, whose plan is the same for all values, and read all rows at once."""
        return map(make, self._rows(name, values))

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
        with self._translated():
            connection = self._moment().connection
            return map(make, connection.execute(QUERIES[name], values, prepare=False, binary=True).fetchall())

    def _stream(
        self,
        name: str,
        values: Mapping[str, object],
        make: Callable[[rows.Row], Value],
        *,
        at_once: int = _FETCHED_AT_ONCE,
    ) -> Iterator[Value]:
        """Read through a server-side cursor: yielded rows are not kept, and other reads can go on meanwhile."""
        with self._translated(), self._moment().connection.cursor(f"find_{next(self._names)}", binary=True) as cursor:
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


def _page(states: Collection[str], before: str | None, limit: int | None) -> dict[str, object]:
    return {"states": list(states) or None, "before": before, "limit": limit}
