"""Derived rows: runs, handoffs, statements, cached results, and calls that are held while their run goes on.

The receipts are the truth. All of these can be computed from them.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.checks import (
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_utc,
)
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RECEIPT,
    RUN,
    SESSION,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    ReceiptId,
    RunId,
    SessionId,
    StreamId,
    require_agent,
    require_id,
    require_principal,
    require_stream,
)
from batonpass.model.base.lifecycle import Carrier, State


class RunState(StrEnum):
    """The state of a run."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"
    SUSPENDED = "suspended"  # it stopped before a call that needs approval
    EXPIRED = "expired"


class Run(Struct, frozen=True, kw_only=True):
    """One agent working once on one task."""

    id: RunId
    root: RunId
    parent: RunId | None  # None for a root run
    handoff: HandoffId | None  # None for a root run
    attempt: int  # attempt number, from 1; 1 for a root run
    agent: AgentId
    principal: PrincipalId
    state: RunState
    started_at: datetime
    ended_at: datetime | None
    series: str | None = None  # of a root run: the name of its series
    session: SessionId | None = None  # the caller's id over one or more trees, if there is one

    def __post_init__(self) -> None:
        require_id("id", self.id, RUN)
        require_id("root", self.root, RUN)
        if self.parent is not None:
            require_id("parent", self.parent, RUN)
        if self.handoff is not None:
            require_id("handoff", self.handoff, HANDOFF)
        require_integer("attempt", self.attempt, least=1)
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        if type(self.state) is not RunState:
            require_member("state", self.state, RunState)
        require_utc("started_at", self.started_at)
        if self.ended_at is not None:
            require_utc("ended_at", self.ended_at)
        if self.series is not None:
            require_code("series", self.series)
        if self.session is not None:
            require_id("session", self.session, SESSION)


class Handoff(Struct, frozen=True, kw_only=True):
    """One task that a run gives to an agent, and its state."""

    id: HandoffId
    root: RunId
    parent: RunId
    to: AgentId
    carrier: Carrier
    state: State
    attempt: int  # number of the latest attempt; 0 before the first acceptance
    run: RunId | None  # of the latest attempt
    initiated: Digest  # the receipt of the offer: an attempt follows it until the handoff has its own stream
    seq: int  # of that receipt in the parent's stream
    scope: StreamId | None = None  # where its key is unique: the parent's own handoff, or the root run
    key: Digest | None = None
    deadline: datetime | None = None

    def __post_init__(self) -> None:
        require_id("id", self.id, HANDOFF)
        require_id("root", self.root, RUN)
        require_id("parent", self.parent, RUN)
        require_agent("to", self.to)
        if type(self.carrier) is not Carrier:
            require_member("carrier", self.carrier, Carrier)
        if type(self.state) is not State:
            require_member("state", self.state, State)
        require_integer("attempt", self.attempt)
        if self.run is not None:
            require_id("run", self.run, RUN)
        require_digest("initiated", self.initiated)
        require_integer("seq", self.seq, least=1)
        if self.scope is not None:
            require_stream("scope", self.scope)
        if self.key is not None:
            require_digest("key", self.key)
        if self.deadline is not None:
            require_utc("deadline", self.deadline)


class Stated(Struct, frozen=True, kw_only=True):
    """A human's statement of their wish: its content, its author and its time."""

    item: ContentId
    root: RunId
    digest: Digest
    by: PrincipalId
    at: datetime

    def __post_init__(self) -> None:
        require_id("item", self.item, CONTENT)
        require_id("root", self.root, RUN)
        require_digest("digest", self.digest)
        require_principal("by", self.by)
        require_utc("at", self.at)

    @property
    def id(self) -> ContentId:
        """Return the name of its row."""
        return self.item


class Cached(Struct, frozen=True, kw_only=True):
    """A result that may be returned again for a while: its key, and the receipt that has it."""

    call: CallId
    key: Digest
    receipt: ReceiptId
    until: datetime

    def __post_init__(self) -> None:
        require_id("call", self.call, CALL)
        require_digest("key", self.key)
        require_id("receipt", self.receipt, RECEIPT)
        require_utc("until", self.until)

    @property
    def id(self) -> CallId:
        """Return the name of its row."""
        return self.call


class HeldCall(Struct, frozen=True, kw_only=True):
    """A call that is or was held while its run goes on."""

    call: CallId
    run: RunId
    receipt: ReceiptId  # the receipt of the hold

    def __post_init__(self) -> None:
        require_id("call", self.call, CALL)
        require_id("run", self.run, RUN)
        require_id("receipt", self.receipt, RECEIPT)

    @property
    def id(self) -> CallId:
        """Return the name of its row."""
        return self.call


class DecidedCall(Struct, frozen=True, kw_only=True):
    """The ruling about a held call of a run that goes on. There is only one, and it is final."""

    call: CallId
    run: RunId
    receipt: ReceiptId
    approved: bool

    def __post_init__(self) -> None:
        require_id("call", self.call, CALL)
        require_id("run", self.run, RUN)
        require_id("receipt", self.receipt, RECEIPT)
        require_instance("approved", self.approved, bool)

    @property
    def id(self) -> CallId:
        """Return the name of its row."""
        return self.call
