"""Roll-ups: counts of closed handoffs, and their sums by day, so that weeks are compared without reading receipts.

They are made from receipts by position, when somebody asks, and never while something is recorded. A store keeps them
and does not look into them. They can be dropped and made again at any time: the receipts are the truth.
"""

from datetime import datetime

from msgspec import Struct

from batonpass.model.base.checks import require_instance, require_integer, require_text, require_utc
from batonpass.model.base.ids import HANDOFF, AgentId, ContentId, HandoffId, require_agent, require_id


class RollupMark(Struct, frozen=True, kw_only=True):
    """How far the roll-ups go, and which version of the computation made them."""

    version: int = 0  # 0: none were made yet
    position: int = 0  # every receipt up to here is in them

    def __post_init__(self) -> None:
        require_integer("version", self.version)
        require_integer("position", self.position)


class RolledHandoff(Struct, frozen=True, kw_only=True):
    """The counts of one closed handoff."""

    handoff: HandoffId
    agent: AgentId  # who worked on it last, else to whom it was offered
    task_kind: str  # the kind of task
    config: str  # digest of the agent's model, prompt and tools; empty if nobody said it
    closed_at: datetime  # of the latest receipt that closed it
    contents: tuple[ContentId, ...]  # whose words are in it: if one is erased, it is made again
    body: bytes

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_agent("agent", self.agent)
        require_text("task_kind", self.task_kind)
        require_text("config", self.config, empty=True)
        require_utc("closed_at", self.closed_at)
        require_instance("body", self.body, bytes)

    @property
    def day(self) -> str:
        """Return the day on which it was closed, in UTC."""
        return self.closed_at.date().isoformat()


class RolledDay(Struct, frozen=True, kw_only=True):
    """The sums over one agent's handoffs of one kind and one configuration on one day."""

    agent: AgentId
    task_kind: str
    config: str
    day: str  # as 2026-01-31, in UTC
    body: bytes  # empty: there is nothing left, and the row goes

    @property
    def id(self) -> tuple[str, str, str, str]:
        """Return the name of its row."""
        return self.agent, self.task_kind, self.config, self.day


class RolledQuery(Struct, frozen=True, kw_only=True):
    """Selects closed handoffs. One must match every part that is given."""

    agent: AgentId | None = None
    task_kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # closed before
    holding: bytes = b""  # these bytes are in its body
    oldest_first: bool = False
    limit: int | None = None

    def selects(self, rolled: RolledHandoff) -> bool:
        """Return whether a closed handoff matches; order and limit aside."""
        return (
            self.agent in {None, rolled.agent}
            and self.task_kind in {None, rolled.task_kind}
            and (self.since is None or rolled.closed_at >= self.since)
            and (self.until is None or rolled.closed_at < self.until)
            and self.holding in rolled.body
        )
