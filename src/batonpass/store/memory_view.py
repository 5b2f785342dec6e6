"""The tables of the reference store, and the view that reads a copy of them."""

import time
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import NotALedgerError, NotFoundError
from batonpass.model.base.ids import (
    RECEIPT,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    KeyId,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
    first_id,
)
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import HandoffEvent, State, sources
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
from batonpass.store.derived_rows import get_row
from batonpass.store.port import ContentSizes, Counts, LedgerInfo, ReceiptQuery, Touched


class Tables(Struct):
    """All tables of a ledger in memory."""

    info: LedgerInfo | None = None
    receipts: list[StoredReceipt] = field(default_factory=list)
    numbers: MutableMapping[ReceiptId, int] = field(default_factory=dict)
    streams: MutableMapping[StreamId, Stream] = field(default_factory=dict)
    contents: MutableMapping[ContentId, StoredContent] = field(default_factory=dict)
    runs: MutableMapping[RunId, Run] = field(default_factory=dict)
    handoffs: MutableMapping[HandoffId, Handoff] = field(default_factory=dict)
    keys: MutableMapping[KeyId, Key] = field(default_factory=dict)
    stated: MutableMapping[ContentId, Stated] = field(default_factory=dict)
    offers: MutableMapping[tuple[StreamId, Digest], HandoffId] = field(default_factory=dict)
    leases: MutableMapping[HandoffId, Lease | None] = field(default_factory=dict)  # None: nobody holds it any more
    seals: MutableMapping[int, Seal] = field(default_factory=dict)
    touches: MutableMapping[ContentId, Touched | None] = field(default_factory=dict)  # None: it was erased
    cached: MutableMapping[CallId, Cached] = field(default_factory=dict)
    charged: MutableMapping[str, Charged] = field(default_factory=dict)
    held_calls: MutableMapping[CallId, HeldCall] = field(default_factory=dict)
    decided_calls: MutableMapping[CallId, DecidedCall] = field(default_factory=dict)
    remarks: MutableMapping[str, Remark] = field(default_factory=dict)
    rolled_handoffs: MutableMapping[HandoffId, RolledHandoff] = field(default_factory=dict)
    rolled_days: MutableMapping[tuple[str, str, str, str], RolledDay] = field(default_factory=dict)
    rolled: MutableMapping[str, RollupMark] = field(default_factory=dict)  # one, under an empty name


_ABOUT_A_CALL: Final = frozenset({Kind.TOOL_REQUESTED, Kind.TOOL_DENIED, Kind.TOOL_HELD})
_OUTCOMES: Final = frozenset({Kind.TOOL_COMPLETED, Kind.TOOL_FAILED})
_CALL: Final = b'"call":"'
_CALL_LENGTH: Final = 31

MAPS: Final = (
    "numbers",
    "streams",
    "contents",
    "runs",
    "handoffs",
    "keys",
    "stated",
    "offers",
    "leases",
    "seals",
    "touches",
    "cached",
    "charged",
    "held_calls",
    "decided_calls",
    "remarks",
    "rolled_handoffs",
    "rolled_days",
    "rolled",
)


def copied(tables: Tables) -> Tables:
    """Return a copy of the tables that later writes do not change."""
    return Tables(tables.info, list(tables.receipts), *(dict(getattr(tables, name)) for name in MAPS))


def now() -> datetime:
    """Return the time of the store's own clock. Tests that replace the relay's clock do not move it."""
    return datetime.fromtimestamp(time.time(), UTC)


class MemoryView:
    """Everything as it was at one moment."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def info(self) -> LedgerInfo:
        """Return the identity of this ledger. Raises `NotALedgerError`."""
        if self._tables.info is None:
            raise NotALedgerError("nothing has been recorded in this memory yet")
        return self._tables.info

    def counts(self) -> Counts:
        """Return the number of rows of each sort."""
        tables = self._tables
        return Counts(
            receipts=len(tables.receipts),
            streams=len(tables.streams),
            runs=len(tables.runs),
            handoffs=len(tables.handoffs),
            contents=len(tables.contents),
            seals=len(tables.seals),
            bytes=sum(len(receipt.payload) for receipt in tables.receipts),
        )

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place."""
        kept = [content for content in self._tables.contents.values() if content.place is not Place.ERASED]
        return ContentSizes(
            rows=len(kept),
            row_bytes=sum(len(content.body or b"") for content in kept),
            files=0,
            file_bytes=0,
            erased=len(self._tables.contents) - len(kept),
        )

    def get_stream(self, stream: StreamId) -> Stream:
        """Return one stream."""
        return get_row(self._tables.streams, stream, "stream")

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""
        yield from self._tables.streams.values()

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt."""
        return self._tables.receipts[get_row(self._tables.numbers, receipt, "receipt") - 1]

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return the receipt with this seq in a stream."""
        for receipt in self._tables.receipts:
            if (receipt.stream, receipt.seq) == (stream, seq):
                return receipt
        raise NotFoundError("receipt", f"{seq} of {stream}")

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts."""
        return (receipt for receipt in self._tables.receipts if self._matches(query, receipt))

    def _matches(self, query: ReceiptQuery, receipt: StoredReceipt) -> bool:
        run = self._tables.runs.get(RunId(receipt.stream))
        position = receipt.position or 0
        return (
            query.stream in {None, receipt.stream}
            and (query.streams is None or receipt.stream in query.streams)
            and (query.attempts_at is None or (run is not None and run.handoff == query.attempts_at.id))
            and receipt.kind not in query.but
            and query.root in {None, self._tables.streams[receipt.stream].root}
            and (query.kind is None or f"{receipt.kind}.".startswith(f"{query.kind}."))
            and (query.agent is None or (run is not None and run.agent == query.agent))
            and (query.since is None or receipt.id >= first_id(RECEIPT, query.since))
            and not query.unsequenced
            and (query.first or 0) <= position
            and (query.last is None or position <= query.last)
        )

    def last_position(self) -> int:
        """Return the position of the last sequenced receipt."""
        return len(self._tables.receipts)

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content."""
        return get_row(self._tables.contents, content, "content")

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids that exist."""
        return (self._tables.contents[content] for content in contents if content in self._tables.contents)

    def find_content_ids(self) -> Iterator[ContentId]:
        """Yield the ids of all contents."""
        yield from self._tables.contents

    def get_run(self, run: RunId) -> Run:
        """Return one run."""
        return get_row(self._tables.runs, run, "run")

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
        found = (
            run
            for _, run in sorted(self._tables.runs.items(), reverse=True)
            if agent in {None, run.agent}
            and root in {None, run.root}
            and parent in {None, run.parent}
            and series in {None, run.series}
            and session in {None, run.session}
            and (not states or run.state in states)
            and not (roots and run.parent is not None)
            and (before is None or run.id < before)
        )
        return islice(found, limit)

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of a handoff in order of their attempt numbers."""
        found = (run for run in self._tables.runs.values() if run.handoff == handoff.id)
        return iter(sorted(found, key=lambda run: run.attempt))

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff."""
        return self._claimed(get_row(self._tables.handoffs, handoff, "handoff"))

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered in a scope with this offer key."""
        return self.get_handoff(get_row(self._tables.offers, (scope, key), "offer"))

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
        found = (
            handoff
            for handoff in map(self._claimed, sorted(self._tables.handoffs.values(), key=_by_id, reverse=True))
            if root in {None, handoff.root}
            and parent in {None, handoff.parent}
            and to in {None, handoff.to}
            and (not states or handoff.state in states)
            and (before is None or handoff.id < before)
        )
        return islice(found, limit)

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed."""
        return (
            self._claimed(handoff)
            for handoff in sorted(self._tables.handoffs.values(), key=lambda known: (known.deadline or now(), known.id))
            if handoff.deadline is not None
            and handoff.deadline <= now()
            and handoff.state in sources(HandoffEvent.EXPIRE, handoff.carrier)
        )

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that are held and wait for a ruling, oldest first."""
        found = (handoff for handoff in self._tables.handoffs.values() if handoff.state is State.HELD)
        return iter(sorted(found, key=lambda handoff: handoff.id))

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield the statements of humans, in the order in which they were recorded."""
        return (stated for stated in self._tables.stated.values() if root in {None, stated.root})

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the recorded changes of a path, the latest first, or all."""
        found = [touched for touched in self._touches() if path in {None, touched.path}]
        yield from sorted(found, key=self._written, reverse=True)

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the recorded changes that these contents hold."""
        return (touched for content in contents if (touched := self._tables.touches.get(content)) is not None)

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths of recorded changes with this ending."""
        paths = {touched.path for touched in self._touches()}
        yield from sorted(path for path in paths if path == ending or path.endswith(f"/{ending}"))

    def _touches(self) -> Iterator[Touched]:
        return (touched for touched in self._tables.touches.values() if touched is not None)

    def _written(self, touched: Touched) -> tuple[int, ContentId]:
        return self._tables.numbers[touched.receipt], touched.content

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the cached results under a key, the latest first, or all."""
        return (cached for _, cached in sorted(self._tables.cached.items(), reverse=True) if key in {None, cached.key})

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield the amounts that are charged to these accounts, or to all."""
        return (
            charged
            for _, charged in sorted(self._tables.charged.items())
            if accounts is None or charged.account in accounts
        )

    def find_held_calls(self, call: CallId | None = None) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their run went on, oldest first; or only this one."""
        return (held for _, held in sorted(self._tables.held_calls.items()) if call in {None, held.call})

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the held calls of open runs without a ruling, oldest first."""
        tables = self._tables
        return (
            held
            for held in self.find_held_calls()
            if held.call not in tables.decided_calls and tables.runs[held.run].state is RunState.OPEN
        )

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield the ruling about a held call, or all of them, oldest first."""
        return (known for _, known in sorted(self._tables.decided_calls.items()) if call in {None, known.call})

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield the remarks of a kind, about a name or about any, the latest first."""
        found = [
            remark
            for remark in self._tables.remarks.values()
            if said is None or (said == remark.said and name in {None, remark.name})
        ]
        return iter(sorted(found, key=lambda remark: remark.receipt, reverse=True))

    def rolled(self) -> RollupMark:
        """Return how far the roll-ups go."""
        return self._tables.rolled.get("", RollupMark())

    def find_rolled(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs that are rolled up, the latest first, or the oldest."""
        found = [rolled for rolled in self._tables.rolled_handoffs.values() if query.selects(rolled)]
        ordered = sorted(found, key=lambda one: (one.closed_at, one.handoff), reverse=not query.oldest_first)
        return islice(ordered, query.limit)

    def find_rolled_handoffs(self, handoffs: Sequence[HandoffId]) -> Iterator[RolledHandoff]:
        """Yield these handoffs, as far as they are rolled up."""
        known = self._tables.rolled_handoffs
        return (known[handoff] for handoff in sorted(set(handoffs)) if handoff in known)

    def find_rolled_with(self, contents: Sequence[ContentId]) -> Iterator[RolledHandoff]:
        """Yield the handoffs whose roll-up has words of one of these contents."""
        wanted = set(contents)
        return (one for _, one in sorted(self._tables.rolled_handoffs.items()) if not wanted.isdisjoint(one.contents))

    def find_rolled_days(self, first: str, last: str, *, agent: AgentId | None = None) -> Iterator[RolledDay]:
        """Yield the sums from one day up to and including another."""
        found = (day for _, day in sorted(self._tables.rolled_days.items()))
        return (day for day in found if first <= day.day <= last and agent in {None, day.agent})

    def get_rolled_day(self, day: RolledDay) -> RolledDay:
        """Return the sum as the store has it; with an empty body if there is none."""
        return self._tables.rolled_days.get(day.id, replace(day, body=b""))

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, ordered by handoff."""
        return (lease for _, lease in sorted(self._tables.leases.items()) if lease is not None)

    def _claimed(self, handoff: Handoff) -> Handoff:
        held = handoff.state is State.READY and self._tables.leases.get(handoff.id) is not None
        return replace(handoff, state=State.CLAIMED) if held else handoff

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""
        yield from self._tables.keys.values()

    def find_seals(self) -> Iterator[Seal]:
        """Yield the seals in order of size."""
        return (seal for _, seal in sorted(self._tables.seals.items()))

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: there is no schema that anybody could change."""
        return iter(())

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: there are no indexes that could differ."""
        return iter(())

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids with this ending, the latest first."""
        relays = (key.relay for key in self._tables.keys.values() if key.relay is not None)
        sessions = (run.session for run in self._tables.runs.values() if run.session is not None)
        tables = self._tables
        known = (*relays, *sessions, *tables.runs, *tables.handoffs, *tables.numbers, *tables.contents)
        wanted = {name for name in known if name.startswith(f"{prefix}_") and name.endswith(ending)}
        yield from sorted(wanted, reverse=True)

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be about a call whose id has this ending."""
        quoted = f'{ending}"'.encode()
        return (
            receipt for receipt in self._tables.receipts if receipt.kind in _ABOUT_A_CALL and quoted in receipt.payload
        )

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield requests of calls without an outcome."""
        latest = sorted(self.find_runs(limit=runs), key=lambda run: run.state is RunState.COMPLETED)
        seen = 0
        for run in latest:
            if seen >= most:
                return
            found = [receipt for receipt in self._tables.receipts if receipt.stream == StreamId(run.id)][-of_each:]
            seen += len(found)
            ended = {_call_in(receipt) for receipt in found if receipt.kind in _OUTCOMES}
            for receipt in found:
                if receipt.kind == Kind.TOOL_REQUESTED and _call_in(receipt) not in ended:
                    yield receipt


def _call_in(receipt: StoredReceipt) -> bytes:
    """Return the id of the call that a receipt is about, read from its bytes without parsing them."""
    return receipt.payload.partition(_CALL)[2][:_CALL_LENGTH]


def _by_id(handoff: Handoff) -> HandoffId:
    return handoff.id
