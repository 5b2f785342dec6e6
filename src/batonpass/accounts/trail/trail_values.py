"""The values of a trail, and the order in which all renderings walk through them.

The values are flat, by id: a chain of a thousand hops is no deeper than one of two.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.accounts.trail.first_lines import Words, elapsed
from batonpass.audit.short_ids import ending
from batonpass.errors import EditedError, NotFoundError
from batonpass.model.base.ids import CallId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Body, HandoffAccepted, HandoffInitiated, Part, RunStarted
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.call import CallRecord


class NotedItem(Struct, frozen=True, kw_only=True):
    """An item that a run recorded."""

    part: Part
    words: Words


class Happened(Struct, frozen=True, kw_only=True):
    """One receipt of the tree, with the first lines of its texts."""

    receipt: ReceiptId
    at: datetime
    body: Body
    words: Mapping[str, Words] = field(default_factory=dict)
    items: tuple[NotedItem, ...] = ()


class Called(Struct, frozen=True, kw_only=True):
    """A call, with the first lines of its texts."""

    record: CallRecord
    target: Words | None = None
    arguments: Words | None = None
    message: Words | None = None
    kept_by: RunId | None = None  # a later attempt that kept its result
    decided: str | None = None  # for a held call: the ruling, and by whom

    @property
    def receipt(self) -> ReceiptId:
        """Return its first receipt."""
        return self.record.receipt.id

    @property
    def at(self) -> datetime:
        """Return when it was requested."""
        return self.record.at


class RunTold(Struct, frozen=True, kw_only=True):
    """One run: all events of its stream, in order."""

    run: Run
    mode: Mode
    epoch: int
    task: Words | None  # for a root, its intent
    receipts: int
    events: tuple[Happened | Called, ...]


class HandoffTold(Struct, frozen=True, kw_only=True):
    """One handoff: its offer, then the acts on it and its attempts, in the order of recording."""

    handoff: Handoff
    mode: Mode
    offered: Happened
    task: Words | None
    may: Words | None  # the permits that its sender asked for
    story: tuple[Happened | RunId, ...]

    @property
    def attempts(self) -> tuple[RunId, ...]:
        """Return its attempts."""
        return tuple(told for told in self.story if not isinstance(told, Happened))


class Trail(Struct, frozen=True, kw_only=True, dict=True):
    """A tree of runs and handoffs, from `top` downwards."""

    root: RunId
    top: RunId | HandoffId
    runs: Mapping[RunId, RunTold]
    handoffs: Mapping[HandoffId, HandoffTold]
    receipts: int
    mark: str | None = None  # set if all or a part of it was imported, and so is unsigned

    def __repr__(self) -> str:
        sizes = f"runs: {len(self.runs)}, handoffs: {len(self.handoffs)}, receipts: {self.receipts}"
        return f"<Trail of {self.top} for {self.principal}, {sizes}>"

    @property
    def principal(self) -> PrincipalId:
        """Return the principal."""
        return self.runs[self.root].run.principal

    @property
    def intent(self) -> Words | None:
        """Return the human's first words."""
        return self.runs[self.root].task

    @property
    def began_at(self) -> datetime:
        """Return when the top began; other times are relative to it."""
        run, handoff = self.runs.get(RunId(self.top)), self.handoffs.get(HandoffId(self.top))
        if run is not None:
            return run.run.started_at
        return handoff.offered.at if handoff is not None else self.runs[self.root].run.started_at

    def since_began(self, at: datetime | None) -> str:
        """Return a time relative to the beginning; empty if it is unknown."""
        if at is None:
            return ""
        since = at - self.began_at
        # Clocks of two machines differ, so something may come before the beginning.
        return f"-{elapsed(-since)}" if since < timedelta(0) else f"+{elapsed(since)}"

    @cached_property
    def calls(self) -> Mapping[CallId, Called]:
        """Return all calls of the tree."""
        events = (event for told in self.runs.values() for event in told.events)
        return {event.record.id: event for event in events if isinstance(event, Called)}

    @cached_property
    def above(self) -> tuple[RunTold, ...]:
        """Return the runs above the top, up to the root."""
        run = self.runs.get(RunId(self.top))
        parent = self.handoffs[HandoffId(self.top)].handoff.parent if run is None else run.run.parent
        found: dict[RunId, RunTold] = {}
        while parent is not None and parent in self.runs:
            if parent in found:
                raise EditedError("the run is its own ancestor", stream=parent, field="parent")
            found[parent] = self.runs[parent]
            parent = found[parent].run.parent
        return tuple(found.values())

    def below(self, top: RunId | HandoffId) -> "Trail":
        """Return the same trail from a run or handoff downwards. Raises `NotFoundError`."""
        if top not in self.runs and top not in self.handoffs:
            raise NotFoundError("run or handoff", top)
        return replace(self, top=top)


class Branch(Struct, frozen=True, kw_only=True):
    """A node of the tree: a run, a handoff, or both in one if the handoff has a single attempt."""

    handoff: HandoffTold | None = None
    run: RunTold | None = None

    @property
    def name(self) -> str:
        """Return its name."""
        if self.run is not None:
            return f"{self.run.run.agent} {ending(self.run.run.id)}"
        return "" if self.handoff is None else f"{self.handoff.handoff.to} {ending(self.handoff.handoff.id)}"

    @property
    def id(self) -> str:
        """Return its id."""
        if self.run is not None:
            return self.run.run.id
        return "" if self.handoff is None else self.handoff.handoff.id

    @property
    def began_at(self) -> datetime | None:
        """Return when it was offered, or else started."""
        if self.handoff is not None:
            return self.handoff.offered.at
        return None if self.run is None else self.run.run.started_at

    @property
    def task(self) -> Words | None:
        """Return its task."""
        told = self.handoff or self.run
        return None if told is None else told.task

    @property
    def states(self) -> tuple[RunState | State, ...]:
        """Return the state of the run, and that of the handoff if it says more."""
        run = None if self.run is None else self.run.run.state
        handoff = None if self.handoff is None else self.handoff.handoff.state
        if run is not None and handoff is not None and (run.value == handoff.value or handoff is State.RUNNING):
            return (run,)
        return tuple(state for state in (run, handoff) if state is not None)


class WalkTurn(StrEnum):
    """The kind of a step."""

    ENTER = "enter"
    TELL = "tell"
    LEAVE = "leave"


class TrailStep(Struct, frozen=True, kw_only=True):
    """One step: a branch begins or ends, or an event in it."""

    turn: WalkTurn
    branch: Branch
    told: Happened | Called | None = None
    depth: int
    last: bool = True  # no further branch among its siblings


def walk(trail: Trail, *, calls: bool = True) -> Iterator[TrailStep]:
    """Yield all steps from the top down, in the order they happened; calls only on request."""
    top = _top(trail)
    seen = {top.id}
    yield TrailStep(turn=WalkTurn.ENTER, branch=top, depth=0)
    stack = [_open(trail, top, calls=calls)]
    while stack:
        branch, entries, final = stack[-1]
        if not entries:
            stack.pop()
            yield TrailStep(turn=WalkTurn.LEAVE, branch=branch, depth=len(stack))
            continue
        entry = entries.pop()
        last = len(entries) <= final
        if not isinstance(entry, Branch):
            yield TrailStep(turn=WalkTurn.TELL, branch=branch, told=entry, depth=len(stack), last=last)
        elif entry.id not in seen:  # altered rows may form a cycle
            seen.add(entry.id)
            yield TrailStep(turn=WalkTurn.ENTER, branch=entry, depth=len(stack), last=last)
            stack.append(_open(trail, entry, calls=calls))


def _top(trail: Trail) -> Branch:
    handoff = trail.handoffs.get(HandoffId(trail.top))
    return _branch(trail, handoff) if handoff is not None else Branch(run=trail.runs[RunId(trail.top)])


def _branch(trail: Trail, handoff: HandoffTold) -> Branch:
    attempts = handoff.attempts
    return Branch(handoff=handoff, run=trail.runs[attempts[0]] if len(attempts) == 1 else None)


def _open(trail: Trail, branch: Branch, *, calls: bool) -> tuple[Branch, list[Happened | Called | Branch], int]:
    """Return a branch, its entries in reverse, and how many of them follow its last branch."""
    found = [entry for entry in _entries(trail, branch) if calls or not isinstance(entry, Called)][::-1]
    final = next((number for number, entry in enumerate(found) if isinstance(entry, Branch)), len(found))
    return branch, found, final


def _entries(trail: Trail, branch: Branch) -> Iterator[Happened | Called | Branch]:
    if branch.handoff is None:
        yield from () if branch.run is None else _events(trail, branch.run)
        return
    yield branch.handoff.offered
    for told in branch.handoff.story:
        if isinstance(told, Happened):
            yield told
        elif branch.run is not None:
            yield from _events(trail, branch.run)
        else:
            yield Branch(run=trail.runs[told])


def _events(trail: Trail, run: RunTold) -> Iterator[Happened | Called | Branch]:
    for event in run.events:
        match event:
            case Happened(body=HandoffInitiated() as body) if body.handoff in trail.handoffs:
                yield _branch(trail, trail.handoffs[body.handoff])
            case Happened(body=RunStarted() as started) if not (started.continues or started.series):
                continue  # the intent is in the header
            case Happened(body=HandoffAccepted() as accepted) if not (accepted.problems or accepted.would_ask):
                continue  # obvious
            case _:
                yield event
