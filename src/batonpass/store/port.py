"""The contract of a store: the methods that every store has, and the guarantees that callers rely on.

A store knows receipts, streams, runs, handoffs and contents. Code above it never sees a table or a transaction. To
write another store, implement `LedgerStore` and `LedgerView`, and run the conformance suite in
`batonpass.testing.conformance`, which states these guarantees as tests. `batonpass.store.memory` is the reference.

A store checks order, enrolment, leases and limits. It does not check signatures: the ledger does that before it
appends, and the verifier does it afterwards.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    LedgerId,
    PublicKey,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
)
from batonpass.model.base.lifecycle import State
from batonpass.model.grants.charge import Charged
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import Key
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream, genesis
from batonpass.store.migrate import AppliedMigration


class LedgerInfo(Struct, frozen=True, kw_only=True):
    """The identity of a ledger: its id, and the root key that decides which relays may write."""

    id: LedgerId
    root_key: PublicKey

    @property
    def genesis(self) -> Digest:
        """Return the digest that the first receipt of a root stream names as its predecessor."""
        return genesis(self.id, self.root_key)


class ReceiptQuery(Struct, frozen=True, kw_only=True):
    """Selects receipts. A receipt must match every part that is given."""

    stream: StreamId | None = None
    streams: tuple[StreamId, ...] | None = None  # any of these; the receipts of each stream come in order of seq
    root: RunId | None = None  # all streams of the tree of this root run
    kind: str | None = None  # an exact kind, or a family such as "handoff"
    attempts_at: Handoff | None = None  # receipts in the streams of its runs, in the order of the attempts
    but: tuple[str, ...] = ()  # exact kinds to leave out; a store need not read them
    agent: AgentId | None = None  # receipts in the streams of this agent's runs
    since: datetime | None = None
    first: int | None = None  # from this position on; only receipts that have a position
    last: int | None = None  # up to and including this position; only receipts that have one
    unsequenced: bool = False  # only receipts that have no position yet


class Touched(Struct, frozen=True, kw_only=True):
    """A recorded change of a path: the receipt that records it, and the content that holds the change."""

    path: str
    receipt: ReceiptId
    content: ContentId


class Counts(Struct, frozen=True, kw_only=True):
    """The number of rows of each sort in a ledger."""

    receipts: int
    streams: int
    runs: int
    handoffs: int
    contents: int
    seals: int
    bytes: int  # size of the ledger, as far as the store can tell


class ContentSizes(Struct, frozen=True, kw_only=True):
    """Number and size of the contents, by the place where they are kept."""

    rows: int
    row_bytes: int
    files: int  # bodies that are too large for a row
    file_bytes: int  # only files that exist
    erased: int


class Wake(StrEnum):
    """Why `LedgerStore.await_work` returned."""

    WORK = "work"  # there was a handoff to claim
    DUE = "due"  # a lease has run out, or a deadline has passed
    NOTHING = "nothing"  # the time is over, or the caller set `stop`
    UNTOLD = "untold"  # this store has no notifications: look again after a while


class LedgerView(Protocol):
    """The ledger as it was at one moment. A reader never blocks a writer, and a writer never blocks a reader.

    `get_x` returns one thing and raises `NotFoundError` if it does not exist. `find_x` yields any number, also none.
    """

    def info(self) -> LedgerInfo:
        """Return the id and the root key of this ledger. Raises `NotALedgerError` if nobody has founded it."""

    def counts(self) -> Counts:
        """Return the number of receipts, streams, runs and so on."""

    def content_sizes(self) -> ContentSizes:
        """Return the number and size of the contents, by place. This reads every content."""

    def get_stream(self, stream: StreamId) -> Stream:
        """Return a stream: its head, epoch and whether it is open. Raises `NotFoundError`."""

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams, in any order."""

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt. Raises `NotFoundError`."""

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return the receipt with this seq in a stream. Raises `NotFoundError`."""

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield the receipts that match a query.

        Receipts of one stream come in order of seq, receipts with positions in order of position, all others in the
        order in which they were written. The store streams them: it keeps no receipt in memory after it was yielded.
        """

    def last_position(self) -> int:
        """Return the position of the last receipt that has one; 0 if none has."""

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content. An erased one has neither salt nor body. Raises `NotFoundError`."""

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield the contents with these ids, in any order. Unknown ids are left out.

        The body is None if the content was erased, or if its file is lost.
        """

    def find_content_ids(self) -> Iterator[ContentId]:
        """Yield the ids of all contents."""

    def get_run(self, run: RunId) -> Run:
        """Return one run. Raises `NotFoundError`."""

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
        """Yield runs, the latest first: at most `limit`, and only runs older than `before`.

        A run must match every part that is given. `states` selects runs in one of these states, `roots` only root runs.
        With one of these parts alone, the store reads no other runs: the cost grows with the number of runs that it
        yields, not with the length of the ledger.
        """

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of a handoff in order of their attempt numbers."""

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff. Raises `NotFoundError`.

        Its state is claimed if it is ready and a worker holds its lease.
        """

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered in a scope with this offer key. Raises `NotFoundError`."""

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
        """Yield handoffs, the latest first: at most `limit`, and only handoffs older than `before`.

        A handoff must match every part that is given. One that is ready and whose lease a worker holds has the state
        claimed, and is selected by that state. With one part alone, the store reads no other handoffs: the cost grows
        with the number of handoffs that it yields.
        """

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs whose deadline has passed by the store's clock and that can still expire, oldest first."""

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that are held and wait for a ruling, oldest first."""

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield the recorded statements of humans, of one tree or of all, in the order in which they were recorded."""

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the recorded changes of a path, the latest first; without a path all changes, in any order.

        Erased changes are left out.
        """

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the recorded changes that these contents hold, in any order.

        Contents that hold no change are left out.
        """

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths of recorded changes that end with these whole path components, each once and sorted."""

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the cached results under a key, the latest first; without a key all, in any order.

        Stale ones are included.
        """

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield how much of each unit is charged to these accounts, or to all accounts, by account and unit."""

    def find_held_calls(self, call: CallId | None = None) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their run went on, oldest first; or only this one."""

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the held calls of open runs for which there is no ruling yet, oldest first."""

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield the ruling about a held call, or all rulings about held calls, oldest first."""

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield the remarks of a kind, or of a kind about a name, the latest first; without a kind all, in any order.

        `name` is used only together with `said`.
        """

    def rolled(self) -> RollupMark:
        """Return how far the roll-ups go, and which version of the computation made them."""

    def find_rolled(self, query: RolledQuery) -> Iterator[RolledHandoff]:
        """Yield closed handoffs that are rolled up, the latest first, or the oldest.

        With an agent or a kind of task, the store reads no others.
        """

    def find_rolled_handoffs(self, handoffs: Sequence[HandoffId]) -> Iterator[RolledHandoff]:
        """Yield these handoffs, as far as they are rolled up, ordered by their ids."""

    def find_rolled_with(self, contents: Sequence[ContentId]) -> Iterator[RolledHandoff]:
        """Yield the handoffs whose roll-up has words of one of these contents. This reads all of them."""

    def find_rolled_days(self, first: str, last: str, *, agent: AgentId | None = None) -> Iterator[RolledDay]:
        """Yield the sums from one day up to and including another, by agent, kind, configuration and day."""

    def get_rolled_day(self, day: RolledDay) -> RolledDay:
        """Return the sum as the store has it, for the agent, kind, configuration and day of `day`.

        Its body is empty if there is none.
        """

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that somebody holds, also those whose time has run out, ordered by handoff."""

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""

    def find_seals(self) -> Iterator[Seal]:
        """Yield the seals in order of size."""

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield each part of the store's schema that somebody has changed: its name, and a sentence that says how."""

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield each entry of the store's own lookup tables that contradicts its rows: a name, and a sentence about it.

        This concerns stores that maintain such tables themselves. One whose indexes are all kept by the database yields
        nothing.
        """

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield the ids with this prefix and this ending, the latest first and each once.

        The prefix says which sort: run, handoff, receipt, relay, content or session. For runs, handoffs and receipts,
        an ending of four characters or more is looked up in an index.
        """

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield the receipts that may be the request, denial or hold of a call whose id has this ending, oldest first.

        All such receipts are included. Others may be among them, because the store does not parse receipts: the caller
        checks each one.
        """

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield requests of calls that have no outcome in their stream, in any order. The search is bounded.

        The store looks at the latest `runs` runs, beginning with those that have not completed, and of each at its last
        `of_each` receipts. After `most` receipts in all it begins no further run.
        """


class LedgerStore(Protocol):
    """Keeps one ledger. Safe to use from many threads. Using it in a forked process raises `ForkedError`."""

    @property
    def url(self) -> str:
        """Return the URL that was opened, without any password."""

    @property
    def confirm_every(self) -> float | None:
        """Return how often a writer must ask whether the store still has the receipts that it acknowledged, in seconds.

        None if every append checks this by itself, because the check costs no round trip: see `Entry.after`.
        """

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return its identity.

        If another process founded it in the meantime, nothing is written, and the identity of that ledger is returned.
        """

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""

    def view(self, about: HandoffId | None = None) -> AbstractContextManager[LedgerView]:
        """Open a view of the ledger. Its moment lies between this call and the first read.

        With `about`, a store may fetch in advance the rows that are usually read before that handoff is accepted. If
        the handoff has just been claimed through this store, the view may show the moment of the claim. A read of
        anything else then raises `StaleHeadError` if those rows have changed since.
        """

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none, and return when they are durable.

        Each receipt becomes the head of its stream by one compare-and-set on (seq, head, epoch, open). Its projection,
        which is its effect on runs, handoffs, keys and so on, is applied in the same commit.

        An entry is a success without any write if the same bytes already are the head of its stream. So a caller that
        does not know the outcome of a commit may repeat it.

        It raises

        - `StaleHeadError` if another receipt came first, or a stream that the receipt fences or hangs from has moved
          on;
        - `FencedError` if the stream is in a later epoch;
        - `StreamClosedError` if the stream takes no more receipts;
        - `RewoundError` if the store has lost the predecessor; where `confirm_every` is None, also if it has lost
          `Entry.after`;
        - `UnknownRelayError` if the recording key is not an active relay's;
        - `UnknownApproverError` if a ruling is signed with a key that is not an active approver's;
        - `IllegalTransitionError` if the handoff cannot make this move from its state;
        - `LeaseLostError` if the entry has a token and that lease is no longer held;
        - `OfferedAlreadyError` if the offer key is taken in its scope;
        - `PremiseError` if the premise of the entry does not hold;
        - `BudgetExhaustedError` if a charge exceeds a limit in `Entry.within`;
        - `DuplicateReceiptError` if an id is taken;
        - `ContentTooLargeError` if a content does not fit;
        - a `StoreError` if the store cannot write.
        """

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Claim the oldest ready handoff to one of these agents, or to any agent, and return the lease.

        The oldest is the one that was written first, whatever the clock of its producer says; one that is postponed is
        left out.
        Returns None if there is none that is free. It may also return None while others claim at the same moment, so a
        caller asks again. The store's clock decides when the lease ends, so the clocks of workers need not agree.
        """

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Extend a lease: it ends `lease_for` from now.

        A lease whose time has run out can be renewed as long as nobody has seized it. Raises `LeaseLostError` if it was
        taken over, ended or released.
        """

    def release(self, lease: Lease) -> None:
        """Give a lease back. A handoff that is still ready can be claimed again.

        A lease that was lost is left as it is.
        """

    def seize(self, *, holder: str, lease_for: timedelta) -> Lease | None:
        """Take over one lease whose time has run out, and return it under a new token; None if there is none.

        Only one caller gets it, so only one ends the attempt.
        """

    def postpone(self, handoff: HandoffId, lasts: timedelta) -> None:
        """Let nobody claim a handoff for a while, counted from now by the store's clock.

        It need not be ready yet: before it is made ready again, it is said when it may be claimed. Its lease, if
        somebody holds it, stays as it is.
        """

    def await_work(self, agents: Collection[AgentId], *, at_most: timedelta, stop: threading.Event) -> Wake:
        """Wait until there may be a handoff to claim for one of these agents, or something is due.

        Returns after `at_most`, or when `stop` is set, and at once if the store has no notifications. The answer is
        only a hint: the caller learns from `claim` whether there is work.
        """

    def sequence(self) -> int:
        """Give every committed receipt its position, and return how many got one. Safe to run in many processes."""

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal. If there is one of the same size already, that one stays as it is.

        Raises `StaleHeadError` if another seal already follows the same predecessor.
        """

    def roll(
        self, after: RollupMark, upto: RollupMark, handoffs: Sequence[RolledHandoff], days: Sequence[RolledDay]
    ) -> bool:
        """Keep roll-ups and move their mark from `after` to `upto`, in one commit. Return whether this was done.

        Nothing is written if another process moved the mark first. If the version changes, all earlier roll-ups are
        dropped. A day without a body is removed.
        """

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return the migrations of this store's schema, and when each was applied."""

    def migrate(self) -> None:
        """Apply the migrations that are missing.

        Raises `NewerSchemaError` if the ledger has a newer schema than this program.
        """

    def close(self) -> None:
        """Release all connections and files. Closing twice is harmless."""
