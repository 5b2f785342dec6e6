"""Runs and handoffs, what a human said, results that are kept, and calls of roots that wait.

All are derived: the receipts are the truth, and these are what they add up to.
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
    """How a run stands or how it ended."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"
    SUSPENDED = "suspended"  # it stopped before a call that somebody has to approve
    EXPIRED = "expired"


class Run(Struct, frozen=True, kw_only=True):
    """One agent working once on one task."""

    id: RunId
    root: RunId
    parent: RunId | None  # None for a root run
    handoff: HandoffId | None  # None for a root run
    attempt: int  # 1 for a root run
    agent: AgentId
    principal: PrincipalId
    state: RunState
    started_at: datetime
    ended_at: datetime | None
    series: str | None = None  # of a root run: the name under which such roots follow each other
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
    """One task that a run delegates to an agent: the checkpoint and the work item in one."""

    id: HandoffId
    root: RunId
    parent: RunId
    to: AgentId
    carrier: Carrier
    state: State
    attempt: int  # 0 until the first acceptance
    run: RunId | None  # the latest attempt
    initiated: Digest  # the receipt of the offer: what an attempt hangs from until the handoff has a stream of its own
    seq: int  # where that receipt stands in its parent's stream
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
    """A statement of what a human wants: where its words are, who said it and when."""

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
        """Return what names it among the derived rows."""
        return self.item


class Cached(Struct, frozen=True, kw_only=True):
    """A result of a call that may be given again for a while: by which key it is found, and which receipt has it."""

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
        """Return what names it among the derived rows."""
        return self.call


class HeldCall(Struct, frozen=True, kw_only=True):
    """A call that waits, or waited, for somebody to let it be made, while its run goes on."""

    call: CallId
    run: RunId
    receipt: ReceiptId  # which says so

    def __post_init__(self) -> None:
        require_id("call", self.call, CALL)
        require_id("run", self.run, RUN)
        require_id("receipt", self.receipt, RECEIPT)

    @property
    def id(self) -> CallId:
        """Return what names it among the derived rows."""
        return self.call


class DecidedCall(Struct, frozen=True, kw_only=True):
    """What somebody decided about such a call: once, and for good."""

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
        """Return what names it among the derived rows."""
        return self.call
