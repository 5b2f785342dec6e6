"""What a receipt says, one value for each kind.

Only ids, enums, codes, integers, times and digests: every word that a person or a model wrote is content, which the
receipt names by digest and which can be erased.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

from batonpass.errors import InvalidValueError
from batonpass.model.checks import (
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_unique,
)
from batonpass.model.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RELAY,
    RUN,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RelayId,
    RunId,
    require_agent,
    require_id,
    require_principal,
)
from batonpass.model.lifecycle import WAITING, Carrier, State


class Kind(StrEnum):
    """The kinds of receipt. The text is stored and signed, so it is forever."""

    RUN_STARTED = "run.started"
    RUN_REKEYED = "run.rekeyed"
    RUN_CLOSED = "run.closed"
    HANDOFF_INITIATED = "handoff.initiated"
    HANDOFF_ACCEPTED = "handoff.accepted"
    HANDOFF_COMPLETED = "handoff.completed"
    HANDOFF_FAILED = "handoff.failed"
    HANDOFF_LAPSED = "handoff.lapsed"
    HANDOFF_CANCELLED = "handoff.cancelled"
    TOOL_REQUESTED = "tool.requested"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    RELAY_ENROLLED = "relay.enrolled"
    RELAY_ROTATED = "relay.rotated"
    RELAY_REVOKED = "relay.revoked"
    CONTENT_ERASED = "content.erased"


class Outcome(StrEnum):
    """How a root run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildHead:
    """Where a child's stream stood when its parent closed: the parent's close-out proves the child."""

    run: RunId
    seq: int
    head: Digest

    def __post_init__(self) -> None:
        require_id("children.run", self.run, RUN)
        require_integer("children.seq", self.seq, least=1)
        require_digest("children.head", self.head)


def _require_children(children: tuple[ChildHead, ...]) -> None:
    require_instance("children", children, tuple)
    for child in children:
        require_instance("children", child, ChildHead)
    require_unique("children", [child.run for child in children])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A principal's intent became a root run."""

    kind: ClassVar = Kind.RUN_STARTED
    run: RunId
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        require_digest("run_key", self.run_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRekeyed:
    """The run's key was lost with its process; the run goes on with another, in the next epoch."""

    kind: ClassVar = Kind.RUN_REKEYED
    run: RunId
    run_key: PublicKey

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_digest("run_key", self.run_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClosed:
    """A root run ended."""

    kind: ClassVar = Kind.RUN_CLOSED
    run: RunId
    outcome: Outcome
    children: tuple[ChildHead, ...] = ()

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_member("outcome", self.outcome, Outcome)
        _require_children(self.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffInitiated:
    """A run offered one task to an agent."""

    kind: ClassVar = Kind.HANDOFF_INITIATED
    handoff: HandoffId
    run: RunId  # the parent
    to: AgentId
    carrier: Carrier
    state: State  # waiting, or held

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("run", self.run, RUN)
        require_agent("to", self.to)
        require_member("carrier", self.carrier, Carrier)
        require_member("state", self.state, State)
        if self.state not in {State.HELD, WAITING[self.carrier]}:
            raise InvalidValueError("state", f"a {self.carrier}-carried handoff cannot begin {self.state}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffAccepted:
    """An agent took a handoff; this begins the run of that attempt."""

    kind: ClassVar = Kind.HANDOFF_ACCEPTED
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: int
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("parent", self.parent, RUN)
        require_id("run", self.run, RUN)
        require_integer("attempt", self.attempt, least=1)
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        require_digest("run_key", self.run_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CloseOut:
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: int
    children: tuple[ChildHead, ...] = ()

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("parent", self.parent, RUN)
        require_id("run", self.run, RUN)
        require_integer("attempt", self.attempt, least=1)
        _require_children(self.children)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffCompleted(_CloseOut):
    """A child delivered; provisional until somebody verifies it."""

    kind: ClassVar = Kind.HANDOFF_COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffFailed(_CloseOut):
    """A child ended without delivering."""

    kind: ClassVar = Kind.HANDOFF_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffLapsed:
    """A worker's lease ran out: its attempt is over, the handoff is not."""

    kind: ClassVar = Kind.HANDOFF_LAPSED
    handoff: HandoffId
    attempt: int
    ended: ChildHead  # the dead run, and where it stood

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_integer("attempt", self.attempt, least=1)
        require_instance("ended", self.ended, ChildHead)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffCancelled:
    """Somebody withdrew a handoff; a run that worked on it is over."""

    kind: ClassVar = Kind.HANDOFF_CANCELLED
    handoff: HandoffId
    by: PrincipalId
    ended: ChildHead | None = None

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_principal("by", self.by)
        if self.ended is not None:
            require_instance("ended", self.ended, ChildHead)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequested:
    """A run is about to call a tool; durable before the call is made."""

    kind: ClassVar = Kind.TOOL_REQUESTED
    run: RunId
    call: CallId
    tool: str

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_agent("tool", self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    """A call returned."""

    kind: ClassVar = Kind.TOOL_COMPLETED
    run: RunId
    call: CallId

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed:
    """A call raised; the error code says what, the content says how."""

    kind: ClassVar = Kind.TOOL_FAILED
    run: RunId
    call: CallId
    error: str

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_code("error", self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayEnrolled:
    """The root key lets a relay record in this ledger."""

    kind: ClassVar = Kind.RELAY_ENROLLED
    relay: RelayId
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("public_key", self.public_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRotated:
    """A relay goes on under another key; what its old key signed before stays good."""

    kind: ClassVar = Kind.RELAY_ROTATED
    relay: RelayId
    old_key: PublicKey
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("old_key", self.old_key)
        require_digest("public_key", self.public_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRevoked:
    """A relay key may record nothing more."""

    kind: ClassVar = Kind.RELAY_REVOKED
    relay: RelayId
    public_key: PublicKey

    def __post_init__(self) -> None:
        require_id("relay", self.relay, RELAY)
        require_digest("public_key", self.public_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentErased:
    """Contents were erased on purpose; their receipts stay."""

    kind: ClassVar = Kind.CONTENT_ERASED
    contents: tuple[ContentId, ...]
    by: PrincipalId

    def __post_init__(self) -> None:
        if not isinstance(self.contents, tuple) or not self.contents:
            raise InvalidValueError("contents", "names nothing to erase")
        for content in self.contents:
            require_id("contents", content, CONTENT)
        require_unique("contents", self.contents)
        require_principal("by", self.by)


@dataclass(frozen=True, slots=True)
class UnknownBody:
    """A body of a kind that this version does not know; its bytes verify, its meaning waits for a newer version."""

    kind: str

    def __post_init__(self) -> None:
        require_code("kind", self.kind)


Body: TypeAlias = (
    RunStarted
    | RunRekeyed
    | RunClosed
    | HandoffInitiated
    | HandoffAccepted
    | HandoffCompleted
    | HandoffFailed
    | HandoffLapsed
    | HandoffCancelled
    | ToolRequested
    | ToolCompleted
    | ToolFailed
    | RelayEnrolled
    | RelayRotated
    | RelayRevoked
    | ContentErased
    | UnknownBody
)
