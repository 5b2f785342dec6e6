"""The rows that follow from receipts. They can be made anew from them at any time; a difference is tampering."""

from msgspec import Struct

from batonpass.model.lifecycle import RunState, State


class StreamRow(Struct, frozen=True, array_like=True):
    """A stream and its head. A run is its stream: what a list of runs shows stands in the same row."""

    id: str
    root: str | None
    seq: int
    head: str
    epoch: int
    state: RunState
    recorder: str
    started_at: int
    last_at: int
    agent: str | None = None  # this and what follows: of runs
    principal: str | None = None  # of roots
    handoff: str | None = None  # of attempts
    attempt: int | None = None


class HandoffRow(Struct, frozen=True, array_like=True):
    """A handoff. `last` is what the next act about it must hang from: its offer, or the head of its own stream."""

    id: str
    parent: str
    root: str
    seq: int  # of the offer, in the stream of the parent
    to: str
    state: State
    attempt: int
    run: str | None
    last: str
    offered_at: int


class OpenCallRow(Struct, frozen=True, array_like=True):
    """A call that was requested and has no outcome: in doubt, unless it is being made at this moment."""

    id: str
    run: str
    key: str
