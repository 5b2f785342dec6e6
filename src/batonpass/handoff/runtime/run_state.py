"""The state of a run in the process that works on it, kept at hand for calls. Receipts are the record."""

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from batonpass.clock import Clock
from batonpass.handoff.history.grant_use import Use
from batonpass.handoff.history.moments import later
from batonpass.handoff.history.past_calls import NOTHING, Resumption
from batonpass.handoff.runtime.bounds import Bounds
from batonpass.handoff.runtime.run_taint import Taint
from batonpass.ledger.position import Working
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    ReceiptId,
    RunId,
    StreamId,
)
from batonpass.model.base.kinds import ScanFound
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.baton.baton import INHERITED, Baton
from batonpass.model.baton.items import Constraint, Item, Report
from batonpass.model.baton.session import NO_SESSION, SessionState
from batonpass.model.bodies.body import Carried, Part, ToolHeld
from batonpass.model.bodies.reasoning import Thought
from batonpass.model.grants.grant import Certificate, Signed
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.records.call import CallRecord

if TYPE_CHECKING:
    from batonpass.attribution.worktree.tree_difference import Look

_carried: Final = unchecked_maker(Carried)  # it repeats fields of an item, which was checked when it was made

_ID: Final = attrgetter("id")

# An offer names at most so many items besides inherited ones, so that its size does not grow with the tree.
MOST_CARRIED: Final = 200

Work: TypeAlias = tuple[str | None, str | None]  # role and phase
NO_WORK: Final[Work] = (None, None)


class Holding(Struct, kw_only=True, weakref=True, eq=False):
    """A run that this process works on: its baton, its notes, and everything that it has done so far."""

    working: Working
    # Copied from its run, whatever is given. They are fields and no properties because every act reads them often.
    id: RunId = RunId("")
    root: RunId = RunId("")
    agent: AgentId = AgentId("")  # that works
    principal: PrincipalId = PrincipalId("")  # for whom it works
    scope: StreamId = StreamId("")  # keys are unique in it: one for all attempts at its handoff
    baton: Baton | None = None  # None for a root run
    own_policy: HandoffPolicy | None = None  # that its sender brought along, besides the policy of the relay
    session: SessionState = NO_SESSION  # the state that it goes on from, if it continues a session
    resumption: Resumption = NOTHING
    bounds: Bounds = field(default_factory=Bounds)  # grants and limits, its own and those above it
    lease: Lease | None = None  # of its worker, as last renewed; None: its caller runs it
    certificate: Signed[Certificate] | None = None  # to prove its grant to tool servers, while it is valid
    attempts_allowed: int | None = None  # by themselves, if its offer says how often a failure is tried again
    tried_again_after: timedelta | None = None  # it has failed, and waits so long for its next attempt
    latest: datetime | None = None  # the latest time that it has seen
    resumed: bool = False  # an earlier process is gone, and we take over its work
    keys_made: set[Digest] = field(default_factory=set)  # keys of calls that other processes made for this run
    replaying: bool = False  # it is finished, and only replays the record
    notes: dict[ContentId, Item] = field(default_factory=dict)
    named: dict[ContentId, Carried] = field(default_factory=dict)  # references to items that it handed on
    stated: tuple[Item, ...] | None = None  # statements of humans in its tree, as last read; None: unread
    refutations: int = 0  # refuted results in its tree, as last read
    looked_for_news: datetime | None = None  # when it last looked whether its baton was revised
    told_verdicts: list[ReceiptId] = field(default_factory=list)  # on what came along to it, as they were numbered
    looked_for_fates: datetime | None = None  # when an offer last looked for the fates of inherited items
    inherits_fallen: bool = False  # something that came along no longer stands, as an offer last read
    scans: dict[ContentId, tuple[ScanFound, ...]] = field(default_factory=dict)  # findings of the scan in items
    relaxed: set[ContentId] = field(default_factory=set)
    claims_work: bool = False  # it recorded work as done
    report: Report | None = None
    flags: tuple[str, ...] = ()  # problems of that report, in codes
    ended: SignedReceipt | None = None  # its last receipt, if it was closed here
    handed_off: set[HandoffId] = field(default_factory=set)
    unsure_offers: set[HandoffId] = field(default_factory=set)  # begun; nobody knows yet whether they were written
    begun: set[RunId] = field(default_factory=set)  # attempts at its handoffs that this process began
    learned: set[RunId] = field(default_factory=set)  # attempts at its handoffs whose results it has taken in
    acted_on: frozenset[HandoffId] = frozenset()  # those of `watched` that somebody had judged, as last read
    watched: set[HandoffId] = field(default_factory=set)  # delivered, maybe unverified, not yet named in an offer
    identical: dict[bytes, int] = field(default_factory=dict)  # how many identical calls were made
    taken_back: dict[bytes, list[int]] = field(default_factory=dict)  # numbers of calls that are free again
    effects: list[CallId] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)  # targets that its calls changed
    last_call: CallId | None = None
    saved: ReceiptId | None = None  # the receipt of its own last checkpoint
    thought: Thought | None = None  # the last message of its model, if its door knows it
    use: Use = field(default_factory=Use)  # how it used its grant, and its refused calls
    first_look: "Look | None" = None  # the files at its beginning, if they are watched
    looked_at: datetime | None = None
    went_outside: bool = False  # a command changed files that it may not write
    unrecorded: int = 0  # calls that were made while the store was away
    kept: list[CallId] = field(default_factory=list)  # calls of earlier attempts that it did not make again
    depth: int | None = None  # hops below the root, once computed
    held: dict[CallId, ToolHeld] = field(default_factory=dict)  # its held calls, while it goes on
    # Calls that people denied in earlier root runs of its session: by tool and arguments, who denied them.
    denied_before: Mapping[tuple[str, bytes], PrincipalId] = field(default_factory=dict)
    used_up: set[Digest] = field(default_factory=set)  # keys of calls that it made: an approval covers a call once
    stops_harm: bool = False  # a model works: harmful calls wait for a person, also if the run is observed
    stays_open: bool = False  # its program goes on while a call is held, so it cannot be suspended
    taint: Taint = field(default_factory=Taint)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        run = self.working.run
        self.id, self.root, self.agent, self.principal = run.id, run.root, run.agent, run.principal
        self.scope = StreamId(run.handoff or run.root)

    @property
    def work(self) -> Work:
        """Return the role and the phase of its work, as its sender gave them."""
        return NO_WORK if self.baton is None else (self.baton.brief.role, self.baton.brief.phase)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the constraints that bind it, without those that were relaxed."""
        with self.lock:
            items = tuple(self.notes.values())
        return tuple(item.value for item in items if isinstance(item.value, Constraint) and item.id not in self.relaxed)

    @property
    def last_checkpoint(self) -> ReceiptId | None:
        """Return its last checkpoint; until it has one of its own, that of the attempt before it."""
        return self.saved or self.resumption.checkpoint

    def present(self, clock: Clock) -> datetime:
        """Return the time, which never goes back behind a time that it has seen or that was recorded above it.

        So a clock that is set back revives no expired grant. Only receipts of its own line count: a relay elsewhere
        whose clock runs ahead ends no grants but those below it.
        """
        with self.lock:
            self.latest = later(clock.now(), self.latest, self.bounds.known_at)
            return self.latest

    def add(self, *items: Item) -> None:
        """Add items to its notes; known items stay as they are."""
        with self.lock:
            for item in items:
                self.notes.setdefault(item.id, item)

    def carried(self, only: frozenset[ContentId] | None = None) -> tuple[Item, ...]:
        """Return the items that travel with its handoffs: all inherited ones, and the others or a selection of them.

        Without a selection, only the latest others travel: a lead with ten thousand children does not tell each child
        about all the others.
        """
        inherited: list[Item] = []
        chosen: list[Item] = []
        with self.lock:
            for item in self.notes.values():
                if item.part is Part.INTENT or item.id in self.relaxed:
                    continue
                if item.part in INHERITED:
                    inherited.append(item)
                elif only is None or item.id in only:
                    chosen.append(item)
        # A selection was made on purpose, so nothing of it is left out.
        return (*inherited, *(chosen[-MOST_CARRIED:] if only is None else chosen))

    def is_abridged(self, only: frozenset[ContentId] | None = None) -> bool:
        """Return whether `carried` leaves items out because there are too many."""
        with self.lock:
            # If all notes together are few enough, nothing has to be counted.
            if only is not None or len(self.notes) <= MOST_CARRIED:
                return False
            # Up to the first that is too many: a lead with a thousand children does not count all their notes.
            others = 0
            for item in self.notes.values():
                others += item.part not in INHERITED
                if others > MOST_CARRIED:
                    return True
            return False

    def found(self) -> tuple[Item, ...]:
        """Return the items that it found beyond its baton, without inherited parts: a parent inherits from no child."""
        given = () if self.baton is None else set(map(_ID, self.baton.items))
        with self.lock:
            return tuple([item for item in self.notes.values() if item.id not in given and item.part not in INHERITED])

    def refs(self, items: Iterable[Item]) -> tuple[Carried, ...]:
        """Return the references of items, each made once, because a lead carries the same items with each handoff."""
        named, found = self.named, []
        for item in items:
            ref = named.get(item.id)
            if ref is None or ref.digest != item.digest or ref.part is not item.part:
                ref = named[item.id] = ref_of(item)
            found.append(ref)
        return tuple(found)

    def count(self, described: bytes) -> int:
        """Return the number of a call among identical calls: the lowest from 1 that is free."""
        with self.lock:
            if free := self.taken_back.get(described):
                return heappop(free)
            number = self.identical[described] = self.identical.get(described, 0) + 1
            return number

    def uncount(self, described: bytes, number: int) -> None:
        """Free the number of a call that was not made or that failed: the next identical call is a repetition of it."""
        with self.lock:
            heappush(self.taken_back.setdefault(described, []), number)

    def find_past(self, key: Digest) -> CallRecord | None:
        """Return the call of an earlier attempt with this key, finished or in doubt; None if there is none."""
        if self.resumption is NOTHING:
            return None
        past = (*self.resumption.finished, *self.resumption.in_doubt)
        return next((call for call in past if call.key == key), None)

    def find_held(self, key: Digest) -> ToolHeld | None:
        """Return the hold of this call, if it was held in this run, the run went on, and it was not made since."""
        if key in self.used_up:
            return None
        held = (*self.resumption.held.values(), *self.held.values())
        own = (call for call in reversed(held) if call.run == self.id and (call.stays or self.id == self.root))
        return next((call for call in own if call.key == key), None)

    def find_approved(self, key: Digest, clock: Clock) -> ToolHeld | None:
        """Return the hold of this call, if somebody approved it before this attempt began, and that still counts.

        None if it was made since, or the approval has expired.
        """
        held, expires = self.resumption.approved.get(key, (None, None))
        if held is None or key in self.used_up or (expires is not None and expires <= self.present(clock)):
            return None
        return held

    def use_up(self, key: Digest, *, idempotent: bool) -> None:
        """Remember that a call is made: its approval is used up.

        An idempotent tool does nothing new under the same key, so its approval still covers a repetition.
        """
        if not idempotent:
            self.used_up.add(key)

    def find_changed(self, target: Digest) -> CallRecord | None:
        """Return a call of an earlier attempt that changed this target, or may have; None if there is none."""
        if self.resumption is NOTHING:
            return None
        past = (*self.resumption.finished, *self.resumption.outdated, *self.resumption.in_doubt)
        return next((call for call in past if call.target == target and not call.reads), None)


def ref_of(item: Item) -> Carried:
    """Return the reference with which receipts name an item."""
    return _carried(item=item.id, digest=item.digest, part=item.part)
