"""The order of a trail, from the top down. All renderings share it."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from batonpass.accounts.trail.first_lines import Words
from batonpass.accounts.trail.trail_values import Called, HandoffTold, Happened, RunTold, Trail
from batonpass.audit.short_ids import ending
from batonpass.model.base.ids import HandoffId, RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, RunStarted
from batonpass.model.ledger.run import RunState


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
