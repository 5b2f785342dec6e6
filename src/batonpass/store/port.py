"""What a store promises. It speaks of receipts, streams, runs and contents; nobody above it sees a table.

A store checks order and enrolment, not signatures: trust is decided by the ledger before it appends and by the verifier
afterwards. The conformance suite in `batonpass.testing.conformance` is this page as tests.
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
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream, genesis
from batonpass.store.migrate import AppliedMigration


class LedgerInfo(Struct, frozen=True, kw_only=True):
    """Who a ledger is: its id, and the root key that decides which relays may write."""

    id: LedgerId
    root_key: PublicKey

    @property
    def genesis(self) -> Digest:
        """Return the digest from which the root streams hang."""
        return genesis(self.id, self.root_key)


class ReceiptQuery(Struct, frozen=True, kw_only=True):
    """Which receipts to read; every given part narrows."""

    stream: StreamId | None = None
    streams: tuple[StreamId, ...] | None = None  # any of these; each one's receipts come by seq
    root: RunId | None = None  # all streams of one tree
    kind: str | None = None  # exact, or a family such as "handoff"
    but: tuple[str, ...] = ()  # not of these kinds, each exact: what is left out is not read
    agent: AgentId | None = None  # receipts in streams of this agent's runs
    since: datetime | None = None
    first: int | None = None  # positions from this one on; only sequenced receipts
    last: int | None = None  # positions up to and including this one; only sequenced receipts
    unsequenced: bool = False  # only receipts that have no position yet


class Touched(Struct, frozen=True, kw_only=True):
    """A change that was recorded under a path: which receipt says so, and the content that holds it."""

    path: str
    receipt: ReceiptId
    content: ContentId


class Counts(Struct, frozen=True, kw_only=True):
    """How much there is."""

    receipts: int
    streams: int
    runs: int
    handoffs: int
    contents: int
    seals: int
    bytes: int  # what the ledger occupies, as far as the store can tell


class ContentSizes(Struct, frozen=True, kw_only=True):
    """How many contents there are by where they are kept, and how many bytes of words."""

    rows: int
    row_bytes: int
    files: int  # bodies that are too large for a row
    file_bytes: int  # of those files that are there
    erased: int


class Wake(StrEnum):
    """Why a worker no longer waits."""

    WORK = "work"  # something was there to claim
    DUE = "due"  # a lease has run out, or a deadline has passed
    NOTHING = "nothing"  # the time is over, or it is to stop
    UNTOLD = "untold"  # this store cannot tell: look again after a while


class LedgerView(Protocol):
    """Everything as it was at one moment. Reading never blocks a writer, and no writer blocks it."""

    def info(self) -> LedgerInfo:
        """Return who this ledger is."""

    def counts(self) -> Counts:
        """Return how much there is."""

    def content_sizes(self) -> ContentSizes:
        """Return how much of it is words, and where they are. Looks at every content."""

    def get_stream(self, stream: StreamId) -> Stream:
        """Return where a stream stands. Raises `NotFoundError`."""

    def find_streams(self) -> Iterator[Stream]:
        """Yield all streams."""

    def get_receipt(self, receipt: ReceiptId) -> StoredReceipt:
        """Return one receipt. Raises `NotFoundError`."""

    def get_receipt_at(self, stream: StreamId, seq: int) -> StoredReceipt:
        """Return one receipt by its place in its stream. Raises `NotFoundError`."""

    def find_receipts(self, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        """Yield receipts: one stream's by seq, sequenced ones by position, else in the order they were written.

        Streaming: nothing is held in memory that was yielded.
        """

    def last_position(self) -> int:
        """Return the position of the last sequenced receipt; 0 if there is none."""

    def get_content(self, content: ContentId) -> StoredContent:
        """Return one content; erased ones without salt and body. Raises `NotFoundError`."""

    def find_contents(self, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
        """Yield those of these contents that are there, in any order; a body whose file is lost comes back as None."""

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
        """Yield runs, the latest first: at most `limit`, and only those that are older than `before`.

        In one of these states, if there are any; with `roots`, only those that nobody handed off to. What is read grows
        with what is yielded: with one narrowing part alone, other runs are not looked at.
        """

    def find_attempts(self, handoff: Handoff) -> Iterator[Run]:
        """Yield the runs of the attempts at a handoff, the first first."""

    def get_handoff(self, handoff: HandoffId) -> Handoff:
        """Return one handoff. Raises `NotFoundError`."""

    def get_offer(self, scope: StreamId, key: Digest) -> Handoff:
        """Return the handoff that was offered under a key in a scope. Raises `NotFoundError`."""

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
        """Yield handoffs, the latest first: at most `limit`, and only those that are older than `before`.

        One that a worker holds under a lease and has not begun is claimed. What is read grows with what is yielded:
        with one narrowing part alone, other handoffs are not looked at.
        """

    def find_overdue(self) -> Iterator[Handoff]:
        """Yield the handoffs that have not ended and whose deadline has passed by the store's clock, oldest first."""

    def find_held(self) -> Iterator[Handoff]:
        """Yield the handoffs that wait for somebody to let them go on, oldest first."""

    def find_statements(self, root: RunId | None = None) -> Iterator[Stated]:
        """Yield what humans said they want, in the order in which it was recorded."""

    def find_touches(self, path: str | None = None) -> Iterator[Touched]:
        """Yield the changes that were recorded under a path, the latest first, or all, in any order.

        One that was erased is gone.
        """

    def find_touches_of(self, contents: Sequence[ContentId]) -> Iterator[Touched]:
        """Yield the paths under which those of these contents that are changes were recorded, in any order."""

    def find_touched_paths(self, ending: str) -> Iterator[str]:
        """Yield the paths under which changes were recorded and that end so, in whole names, each once, in order."""

    def find_cached(self, key: Digest | None = None) -> Iterator[Cached]:
        """Yield the results that are kept under a key, the latest first, or all, in any order; also stale ones."""

    def find_charged(self, accounts: Collection[StreamId] | None = None) -> Iterator[Charged]:
        """Yield what is used up of some accounts, or of all that there are, by account and unit."""

    def find_held_calls(self) -> Iterator[HeldCall]:
        """Yield the calls that are or were held while their runs went on, oldest first."""

    def find_waiting_calls(self) -> Iterator[HeldCall]:
        """Yield the calls of open runs that wait for somebody to let them be made, oldest first."""

    def find_decided_calls(self, call: CallId | None = None) -> Iterator[DecidedCall]:
        """Yield what was decided about such a call, or about all, oldest first."""

    def find_remarks(self, said: RemarkKind | None = None, name: str | None = None) -> Iterator[Remark]:
        """Yield what is said about something, or of a kind, the latest first; or all, in any order.

        A name is looked for only together with what is said about it.
        """

    def find_leases(self) -> Iterator[Lease]:
        """Yield the leases that are held, also those that have run out, by handoff."""

    def find_keys(self) -> Iterator[Key]:
        """Yield every key that is or was enrolled, the root key first."""

    def find_seals(self) -> Iterator[Seal]:
        """Yield seals by size."""

    def find_alterations(self) -> Iterator[tuple[str, str]]:
        """Yield what somebody has changed in the store's own schema: the name of each part, and a sentence about it."""

    def find_misfiled(self) -> Iterator[tuple[str, str]]:
        """Yield what the store keeps to find its rows by and does not agree with them: a name, and a sentence about it.

        Where the database keeps all its indexes itself, there is nothing that could differ.
        """

    def find_ids(self, prefix: str, ending: str) -> Iterator[str]:
        """Yield ids of runs, handoffs, receipts, relays, contents or sessions, by prefix, with this ending.

        The latest first, and each once. From four characters on, others are not looked at among runs, handoffs and
        receipts.
        """

    def find_call_receipts(self, ending: str) -> Iterator[StoredReceipt]:
        """Yield receipts that may be the request, the denial or the hold of a call with this ending, oldest first.

        None of them is missing. Others may be among them: what a receipt says is not read here.
        """

    def find_open_requests(self, *, runs: int, of_each: int, most: int) -> Iterator[StoredReceipt]:
        """Yield the requests of calls that have no outcome in their stream, in any order, as far as this is looked for.

        Looked at are so many runs, the latest, those first that have not completed; of each, so many receipts, the
        last; and no further run after so many receipts in all.
        """


class LedgerStore(Protocol):
    """Keeps a ledger. Safe to use from many threads; refuses use after a fork."""

    @property
    def url(self) -> str:
        """Return what was opened, without any password."""

    @property
    def largest_content(self) -> int | None:
        """Return how many bytes one content may have at most; None if only the disk limits it."""

    @property
    def confirm_every(self) -> float | None:
        """Return after how many seconds a writer asks whether the store still has what it acknowledged.

        None where every append looks for that itself, because it costs no round trip: see `Entry.after`.
        """

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return who it is.

        If another process founded it in the meantime, nothing is written and that one's info is returned.
        """

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""

    def view(self, about: HandoffId | None = None) -> AbstractContextManager[LedgerView]:
        """Open everything as it is now, for reading: at the latest as it is when it is first looked at.

        With `about`, a store may bring along what is usually read of a handoff before it is taken. If it was claimed
        here a moment ago, that is the moment then. Looking further raises `StaleHeadError` if that is not so any more.
        """

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none; return when they are durable.

        Each receipt becomes its stream's head by one compare-and-set on (seq, head, epoch, open), and its projection
        is applied. Raises `StaleHeadError` if another receipt came first, `FencedError` if the stream is in a later
        epoch, `StreamClosedError` if it takes no more, `UnknownRelayError` if the recording key is not active,
        `IllegalTransitionError` if a handoff cannot go there, `DuplicateReceiptError` if an id is taken,
        `ContentTooLargeError` if a content does not fit, and a `StoreError` if the store cannot do it.
        An entry that is already there with the same bytes, as head of its stream, is a success: the answer to a
        commit whose outcome was unknown. An entry with a lease's token raises `LeaseLostError` if that lease is no
        longer held; an offer whose key is taken in its scope raises `OfferedAlreadyError`; a decision that was signed
        with a key that is not an active approver's raises `UnknownApproverError`. Where `confirm_every` is None, an
        entry after something that was acknowledged raises `RewoundError` if that is not there any more. One with a
        premise that does not hold raises `PremiseError`.
        """

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Take the oldest ready handoff to one of these agents; None if there is none that nobody holds.

        Its end is computed by the store's clock. None may come back while work is queued and others claim it.
        """

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Hold a lease for longer, counted from now. Raises `LeaseLostError` if another has it, or it is over."""

    def release(self, lease: Lease) -> None:
        """Give a lease back: a handoff that was not begun can be claimed again. One that is lost stays lost."""

    def seize(self, *, holder: str, lease_for: timedelta) -> Lease | None:
        """Take over one lease that has run out, so that nobody else ends its attempt; None if there is none."""

    def await_work(self, agents: Collection[AgentId], *, at_most: timedelta, stop: threading.Event) -> Wake:
        """Wait until something may be there to claim for one of these agents, or is due; for so long, or until `stop`.

        Returns at once where nobody can tell. Whatever is returned is a hint: what matters is what a claim finds.
        """

    def sequence(self) -> int:
        """Give every committed receipt its position and return how many got one. Safe to run twice at once."""

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal. One of the same size that is kept already stays as it is.

        Raises `StaleHeadError` if another seal already follows the same one.
        """

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return the steps of this store's schema, and when each was applied."""

    def migrate(self) -> None:
        """Apply the steps that are missing."""

    def close(self) -> None:
        """Let go of everything. Closing twice is harmless."""
