"""The values of a trail. They are flat, by id: a chain of a thousand hops is no deeper than one of two."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.accounts.trail.first_lines import Words
from batonpass.errors import EditedError, NotFoundError
from batonpass.model.base.ids import CallId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body, Part
from batonpass.model.ledger.run import Handoff, Run
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
    may: Words | None  # what its sender asked for it
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
