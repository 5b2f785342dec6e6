"""What a caller asks for when it hands work on, before anybody has decided about it."""

from datetime import datetime

from msgspec import Struct, field

from batonpass.model.baton import Brief
from batonpass.model.bodies import Relation
from batonpass.model.checks import require_instance, require_text, require_utc
from batonpass.model.grant import Grant
from batonpass.model.ids import AgentId, ContentId
from batonpass.model.items import ItemValue
from batonpass.model.lifecycle import Carrier
from batonpass.model.permit import spell_time
from batonpass.model.policy import HandoffPolicy
from batonpass.model.reasoning import Thought
from batonpass.wire.documents import to_document


class Asked(Struct, frozen=True, kw_only=True):
    """What a caller asks for; `fields` says which part of it decides whether two offers are the same."""

    to: AgentId
    task: str
    relation: Relation = Relation.LEAD_TO_WORKER
    brief: Brief = field(default_factory=Brief)
    said: tuple[ItemValue, ...] = ()
    deadline: datetime | None = None
    carrier: Carrier = Carrier.CALLER
    hold: bool = False
    key: str | None = None
    carry: frozenset[ContentId] | None = None  # a selection of what the sender knows; None: all of it
    context: str | None = None  # what is said besides, as free text
    policy: HandoffPolicy | None = None  # applied besides the relay's own; it can only refuse more
    grant: Grant | None = None  # what the child is to hold
    thought: Thought | None = None  # the message it is asked for with; None: what the run knows of that

    def __post_init__(self) -> None:
        require_text("task", self.task)
        if self.key is not None:
            require_text("key", self.key)
        if self.deadline is not None:
            require_utc("deadline", self.deadline)
        if self.context is not None:
            require_text("context", self.context)
        if self.policy is not None:
            require_instance("policy", self.policy, HandoffPolicy)

    def fields(self) -> dict[str, object]:
        """Return what makes up the fingerprint."""
        asked = {
            "to": self.to,
            "task": self.task,
            "relation": self.relation,
            "brief": to_document(self.brief),
            "said": [[type(value).__name__, to_document(value)] for value in self.said],
        }
        if self.context is not None:
            asked["context"] = self.context
        return asked if self.grant is None else {**asked, **_beyond_may(self.grant)}


def _beyond_may(grant: Grant) -> dict[str, object]:
    """Return what a grant says besides what may be used, which stands in the brief."""
    said = {
        "may delegate": list(grant.may_delegate.lines),
        "limits": str(grant.limits),
        "until": None if grant.until is None else spell_time(grant.until),
        "max depth": grant.max_depth,
    }
    return {name: value for name, value in said.items() if value not in (None, [], "")}
