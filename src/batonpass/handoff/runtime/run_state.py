"""What this process knows of a run that it works on."""

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final

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
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.baton.baton import INHERITED, Baton
from batonpass.model.baton.items import Constraint, Item, Report
from batonpass.model.baton.session import NO_SESSION, SessionState
from batonpass.model.bodies.body import Carried, Part, ToolHeld
from batonpass.model.bodies.reasoning import Thought
from batonpass.model.grants.grant import Certificate, Signed
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.records.call import CallRecord

if TYPE_CHECKING:
    from batonpass.attribution.worktree.tree_difference import Look

_carried: Final = unchecked_maker(Carried)  # an item was checked when it was made, and this repeats its parts

_ID: Final = attrgetter("id")

# Of items that a sender may select from, an offer names so many at most: its size must not grow with the tree.
MOST_CARRIED: Final = 200


class Holding(Struct, kw_only=True, weakref=True, eq=False):
    """A run that this process works on: its baton, its notes, and what it has done so far."""

    working: Working
    # Of its run, whatever is given: every act asks for them several times, so they are parts and no questions.
    id: RunId = RunId("")
    root: RunId = RunId("")
    agent: AgentId = AgentId("")  # who works
    principal: PrincipalId = PrincipalId("")  # for whom
    scope: StreamId = StreamId("")  # where keys of what it hands off are unique, for all attempts at its handoff
    baton: Baton | None = None  # None for a root
    session: SessionState = NO_SESSION  # what it began with, if it goes on where others stopped
    resumption: Resumption = NOTHING
    bounds: Bounds = field(default_factory=Bounds)  # what it is held to, by itself and by everybody above it
    lease: Lease | None = None  # under which a worker holds it, as it was renewed last; None: its caller carries it
    certificate: Signed[Certificate] | None = None  # what it shows to those offline, while it is good
    latest: datetime | None = None  # the latest moment that it has seen
    resumed: bool = False  # whoever worked on it before is gone: what they left running is ours to take over
    keys_made: set[Digest] = field(default_factory=set)  # of calls that other processes made for this run
    replaying: bool = False  # it is finished: everything it asks for comes from the record
    notes: dict[ContentId, Item] = field(default_factory=dict)
    named: dict[ContentId, Carried] = field(default_factory=dict)  # how receipts name items that it handed on
    stated: tuple[Item, ...] | None = None  # all that humans said in its tree when it last looked; None: it never did
    refutations: int = 0  # of results in its tree, when it last looked
    relaxed: set[ContentId] = field(default_factory=set)
    report: Report | None = None
    flags: tuple[str, ...] = ()  # what is wrong with that report, as whoever took it down found it
    ended: SignedReceipt | None = None  # its last receipt, once it was closed here
    handed_off: set[HandoffId] = field(default_factory=set)
    begun: set[RunId] = field(default_factory=set)  # attempts at those that this very process began
    learned: set[RunId] = field(default_factory=set)  # attempts at those whose end it knows
    acted_on: frozenset[HandoffId] = frozenset()  # of those watched, which somebody had judged when it last looked
    watched: set[HandoffId] = field(default_factory=set)  # those whose result it may go on with, not yet reported
    identical: dict[bytes, int] = field(default_factory=dict)  # how many calls were like each other
    taken_back: dict[bytes, list[int]] = field(default_factory=dict)  # numbers that are free again
    effects: list[CallId] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)  # the targets that its calls named
    last_call: CallId | None = None
    saved: ReceiptId | None = None  # its own last checkpoint
    thought: Thought | None = None  # the message that its model wrote last, where its door knows of one
    use: Use = field(default_factory=Use)  # what it did under its grant, and what it was refused
    first_look: "Look | None" = None  # its files as they were, if they are watched
    looked_at: datetime | None = None
    went_outside: bool = False  # a command of it changed what it may not write
    unrecorded: int = 0  # calls that were made while nothing could be written
    kept: list[CallId] = field(default_factory=list)  # calls of earlier attempts whose results it was given
    depth: int | None = None  # hops below the root, once somebody asked
    held: dict[CallId, ToolHeld] = field(default_factory=dict)  # its own calls that wait while it goes on
    # What people denied in earlier roots of its session: who, by tool and arguments.
    denied_before: Mapping[tuple[str, bytes], PrincipalId] = field(default_factory=dict)
    used_up: set[Digest] = field(default_factory=set)  # the keys of calls that it made: no approval covers them twice
    stays_open: bool = False  # its program goes on while a call waits, so it cannot be suspended; a root never can
    taint: Taint = field(default_factory=Taint)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        run = self.working.run
        self.id, self.root, self.agent, self.principal = run.id, run.root, run.agent, run.principal
        self.scope = StreamId(run.handoff or run.root)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return what binds it."""
        with self.lock:
            items = tuple(self.notes.values())
        return tuple(item.value for item in items if isinstance(item.value, Constraint) and item.id not in self.relaxed)

    @property
    def last_checkpoint(self) -> ReceiptId | None:
        """Return its last checkpoint; until it has one of its own, that of the attempt which it goes on from."""
        return self.saved or self.resumption.checkpoint

    def present(self, clock: Clock) -> datetime:
        """Return the time, and never one before what it has seen or what was recorded above it when it was taken up.

        Only of its own line: a relay elsewhere whose clock runs ahead ends no grant but those that hang from it.
        """
        with self.lock:
            self.latest = later(clock.now(), self.latest, self.bounds.known_at)
            return self.latest

    def add(self, *items: Item) -> None:
        """Note items; those that are known stay as they are."""
        with self.lock:
            for item in items:
                self.notes.setdefault(item.id, item)

    def carried(self, only: frozenset[ContentId] | None = None) -> tuple[Item, ...]:
        """Return what travels with what it hands off: what is inherited anyway, and all else it knows or a selection.

        Of what it knows, the latest: a lead with ten thousand children does not tell each of all the others.
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
        # A selection is somebody's decision: nothing of it is left out.
        return (*inherited, *(chosen[-MOST_CARRIED:] if only is None else chosen))

    def is_abridged(self, only: frozenset[ContentId] | None = None) -> bool:
        """Return whether it knows more than it hands on without being told what to select."""
        with self.lock:
            # What it knows in all is no more than that: nothing has to be counted.
            if only is not None or len(self.notes) <= MOST_CARRIED:
                return False
            return sum(item.part not in INHERITED for item in self.notes.values()) > MOST_CARRIED

    def found(self) -> tuple[Item, ...]:
        """Return what it found out beyond what it was given; what binds it is not its parent's to inherit."""
        given = () if self.baton is None else set(map(_ID, self.baton.items))
        with self.lock:
            return tuple([item for item in self.notes.values() if item.id not in given and item.part not in INHERITED])

    def refs(self, items: Iterable[Item]) -> tuple[Carried, ...]:
        """Return how receipts name items. A lead carries the same ones with each handoff: they are made once."""
        named, found = self.named, []
        for item in items:
            ref = named.get(item.id)
            if ref is None or ref.digest != item.digest or ref.part is not item.part:
                ref = named[item.id] = ref_of(item)
            found.append(ref)
        return tuple(found)

    def count(self, described: bytes) -> int:
        """Return the how-manyth identical call this is: the lowest number from 1 on that none of them has."""
        with self.lock:
            if free := self.taken_back.get(described):
                return heappop(free)
            number = self.identical[described] = self.identical.get(described, 0) + 1
            return number

    def uncount(self, described: bytes, number: int) -> None:
        """Take a call back that was not made, or failed: the next one like it is the one that was meant."""
        with self.lock:
            heappush(self.taken_back.setdefault(described, []), number)

    def find_past(self, key: Digest) -> CallRecord | None:
        """Return the call of an earlier attempt that this one repeats."""
        if self.resumption is NOTHING:
            return None
        past = (*self.resumption.finished, *self.resumption.in_doubt)
        return next((call for call in past if call.key == key), None)

    def find_held(self, key: Digest) -> ToolHeld | None:
        """Return this very call of this very run, if it was held before and its run went on meanwhile."""
        if key in self.used_up:
            return None
        held = (*self.resumption.held.values(), *self.held.values())
        own = (call for call in reversed(held) if call.run == self.id and (call.stays or self.id == self.root))
        return next((call for call in own if call.key == key), None)

    def is_approved(self, key: Digest) -> bool:
        """Return whether somebody let this call be made before this attempt began, and it was not made since."""
        return key in self.resumption.approved and key not in self.used_up

    def use_up(self, key: Digest, *, idempotent: bool) -> None:
        """Remember that a call is made: an approval of it is good for nothing more.

        Made again under the same key, an idempotent tool does nothing new, so that is still the call that was approved.
        """
        if not idempotent:
            self.used_up.add(key)

    def find_changed(self, target: Digest) -> CallRecord | None:
        """Return a call of an earlier attempt that changed this target, or may have."""
        if self.resumption is NOTHING:
            return None
        past = (*self.resumption.finished, *self.resumption.outdated, *self.resumption.in_doubt)
        return next((call for call in past if call.target == target and not call.reads), None)


def ref_of(item: Item) -> Carried:
    """Return how receipts name an item."""
    return _carried(item=item.id, digest=item.digest, part=item.part)
