"""The view of a ledger in a database: the questions that every dialect of SQL answers by a statement of the same name.

The databases differ only in how a statement is chosen and run, and in how lists are written.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from msgspec.structs import asdict, replace

from batonpass.errors import NotALedgerError, NotFoundError
from batonpass.model.base.ids import (
    CONTENT,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
)
from batonpass.model.base.lifecycle import State
from batonpass.model.grants.charge import Charged
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.key import Key
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream
from batonpass.store import rows
from batonpass.store.port import Counts, LedgerInfo, Touched

Value = TypeVar("Value")
Listed = TypeVar("Listed", Run, Handoff)

NOTHING: Final[Mapping[str, object]] = {}

_ON_A_LEASE: Final = {State.READY: "find_ready", State.CLAIMED: "find_claimed"}


class SqlView(ABC):
    """The ledger as it was at one moment. Belongs to one thread."""

    def __init__(self, where: str) -> None:
        self._where = where

    @abstractmethod
    def _first(self, name: str, values: Mapping[str, object] = NOTHING) -> rows.Row | None:
        """Return the first row that a statement yields, if there is one."""

    @abstractmethod
    def _find(self, name: str, values: Mapping[str, object], make: Callable[[rows.Row], Value]) -> Iterator[Value]:
        """Yield the value of each row that a statement yields."""

    @abstractmethod
    def _list(self, items: Collection[str]) -> object:
        """Return a list of texts as statements of this dialect take it."""

    @abstractmethod
    def _page(self, states: Collection[str], before: str | None, limit: int | None) -> dict[str, object]:
        """Return the states and the ends of a list as statements of this dialect take them."""

    @abstractmethod
    def _size(self) -> int:
        """Return the number of bytes that the ledger takes."""

    def _content(self, row: rows.Row) -> StoredContent:
        return rows.content(row)

    def info(self) -> LedgerInfo:
        """Return the identity of this ledger. Raises `NotALedgerError`."""
        row = self._first("read_ledger")
        if row is None:
            raise NotALedgerError(f"nothing has been recorded in {self._where} yet")
        return rows.info(row)

    def counts(self) -> Counts:
        """Return the number of rows of each sort."""
        receipts, streams, runs, handoffs, contents, seals = self._first("counts") or (0,) * 6
        return Counts(
            receipts=receipts,
            streams=streams,
            runs=runs,
            handoffs=handoffs,
            contents=contents,
            seals=seals,
            bytes=self._size(),
        )

    def get_stream(self, stream: StreamId) -> Stream:
        """Return one stream."""
        return self._get("get_stream", stream, rows.stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        return self._find("find_streams", NOTHING, rows.stream)

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._get("get_receipt", receipt, rows.receipt, "receipt")

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return the receipt with this seq in a stream."""
        row = self._first("get_receipt_at", {"stream": stream, "seq": seq})
        if row is None:
            raise NotFoundError("receipt", f"{seq} of {stream}")
        return rows.receipt(row)

    def last_position(self) -> int:
        """Return the position of the last receipt that has one."""
        row = self._first("last_position")
        return 0 if row is None else int(row[0])

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return self._get("get_content", content, self._content, "content")

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
        narrowed = {"agent": agent, "root": root, "parent": parent, "series": series, "session": session}
        values = {**narrowed, "roots": roots, **self._page(states, before, limit)}
        if states and set(narrowed.values()) == {None}:
            queries = [("find_runs_in_state", {**values, "state": state}) for state in sorted(states)]
            return self._merge(queries, rows.run, limit)
        return self._find("find_runs", values, rows.run)

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of a handoff in order of their attempt numbers."""
        return self._find("find_attempts", {"parent": handoff.parent, "handoff": handoff.id}, rows.run)

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
        narrowed = {"root": root, "parent": parent, "to": to}
        values = {**narrowed, **self._page(states, before, limit)}
        if states and set(narrowed.values()) == {None}:
            queries = [
                (_ON_A_LEASE.get(state, "find_handoffs_in_state"), {**values, "state": state})
                for state in sorted(states)
            ]
            return self._merge(queries, rows.handoff, limit)
        return self._find("find_handoffs", values, rows.handoff)

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that are held and wait for a ruling, oldest first."""
        return self._find("find_held", NOTHING, rows.handoff)

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield the statements of humans, in the order in which they were recorded."""
        if root is None:
            return self._find("find_all_statements", NOTHING, rows.stated)
        return self._find("find_statements", {"root": root}, rows.stated)

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the recorded changes of a path, the latest first, or all."""
        if path is None:
            return self._find("find_all_touches", NOTHING, rows.touched)
        return self._find("find_touches", {"path": path}, rows.touched)

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the recorded changes that these contents hold."""
        return self._find("find_touches_of", {"ids": self._list(contents)}, rows.touched)

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths of recorded changes with this ending."""
        return self._find("find_touched_paths", {"ending": ending}, rows.path)

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the cached results under a key, the latest first, or all."""
        if key is None:
            return self._find("find_all_cached", NOTHING, rows.cached)
        return self._find("find_cached", {"key": key}, rows.cached)

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield the amounts that are charged to these accounts, or to all."""
        if accounts is None:
            return self._find("find_all_charged", NOTHING, rows.charged)
        return self._find("find_charged", {"accounts": self._list(accounts)}, rows.charged)

    def find_held_calls(self, call: CallId | None = None) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their run went on, oldest first; or only this one."""
        if call is None:
            return self._find("find_held_calls", NOTHING, rows.held_call)
        return self._find("find_held_call", {"call": call}, rows.held_call)

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the held calls of open runs without a ruling, oldest first."""
        return self._find("find_waiting_calls", NOTHING, rows.held_call)

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield the ruling about a held call, or all of them, oldest first."""
        if call is None:
            return self._find("find_decided_calls", NOTHING, rows.decided_call)
        return self._find("find_decided_call", {"call": call}, rows.decided_call)

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield the remarks of a kind, about a name or about any, the latest first."""
        if said is None:
            return self._find("find_all_remarks", NOTHING, rows.remark)
        if name is None:
            return self._find("find_remarks_of_kind", {"said": said}, rows.remark)
        return self._find("find_remarks", {"said": said, "name": name}, rows.remark)

    def rolled(self) -> RollupMark:
        """Return how far the roll-ups go."""
        row = self._first("read_rolled")
        return RollupMark() if row is None else rows.rollup_mark(row)

    def find_rolled(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs that are rolled up, the latest first, or the oldest."""
        values = {**rows.rolled_values(query), "limit": self._page((), None, query.limit)["limit"]}
        name = "find_rolled_oldest_first" if query.oldest_first else "find_rolled"
        return self._find(name, values, rows.rolled_handoff)

    def find_rolled_handoffs(self, handoffs: Sequence[HandoffId]) -> Iterator[RolledHandoff]:
        """Yield these handoffs, as far as they are rolled up."""
        return self._find("find_rolled_handoffs", {"handoffs": self._list(handoffs)}, rows.rolled_handoff)

    def find_rolled_with(self, contents: Sequence[ContentId]) -> Iterator[RolledHandoff]:
        """Yield the handoffs whose roll-up has words of one of these contents."""
        return self._find("find_rolled_with", {"contents": self._list(contents)}, rows.rolled_handoff)

    def find_rolled_days(self, first: str, last: str, *, agent: AgentId | None = None) -> Iterator[RolledDay]:
        """Yield the sums from one day up to and including another."""
        name = "find_rolled_days" if agent is None else "find_rolled_days_of_agent"
        return self._find(name, {"agent": agent, "first": first, "last": last}, rows.rolled_day)

    def get_rolled_day(self, day: RolledDay) -> RolledDay:
        """Return the sum as the store has it; with an empty body if there is none."""
        row = self._first("get_rolled_day", asdict(day))
        return replace(day, body=b"") if row is None else rows.rolled_day(row)

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        return self._find("find_keys", NOTHING, rows.key)

    def find_seals(self) -> Iterator[Seal]:
        """Yield the seals in order of size."""
        return self._find("find_seals", NOTHING, rows.seal)

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        return self._find(f"find_{prefix}_ids", {"ending": ending}, rows.identifier)

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield requests of calls without an outcome."""
        return self._find("find_open_requests", {"runs": runs, "of_each": of_each, "most": most}, rows.receipt)

    def _get(self, name: str, given: str, make: Callable[[rows.Row], Value], what: str) -> Value:
        row = self._first(name, {"id": given})
        if row is None:
            raise NotFoundError(what, given)
        return make(row)

    def _merge(
        self,
        queries: Sequence[tuple[str, Mapping[str, object]]],
        make: Callable[[rows.Row], Listed],
        limit: int | None,
    ) -> Iterator[Listed]:
        """Merge the results of one query per state, the latest first. Each query comes in the order of its index."""
        found = [self._find(name, values, make) for name, values in queries]
        return islice(heapq.merge(*found, key=lambda value: value.id, reverse=True), limit)
