"""From what a caller writes to what is asked for, before anybody has decided about it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from batonpass.errors import InvalidValueError
from batonpass.handoff.transfer.inputs import ChangedInputs
from batonpass.model.base.checks import as_member, require_instance, require_text, require_utc
from batonpass.model.base.ids import AgentId, ContentId, require_agent
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.items import Item, ItemValue
from batonpass.model.bodies.body import Relation
from batonpass.model.bodies.reasoning import Thought
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.permit import spell_time
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.wire.canonical import encode_typed
from batonpass.wire.documents import to_document


class OfferRequest(Struct, frozen=True, kw_only=True):
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
    inputs: ChangedInputs | None = None  # what to do if it was offered before with others; None: as its key has it
    thought: Thought | None = None  # the message it is asked for with; None: what the run knows of that

    def __post_init__(self) -> None:
        require_agent("to", self.to)
        require_text("task", self.task)
        if self.key is not None:
            require_text("key", self.key)
        if self.deadline is not None:
            require_utc("deadline", self.deadline)
        if self.context is not None:
            require_text("context", self.context)
        if self.policy is not None:
            require_instance("policy", self.policy, HandoffPolicy)

    def described(self) -> bytes:
        """Return what makes up the fingerprint, as canonical JSON."""
        asked: dict[str, object] = {
            "to": self.to,
            "task": self.task,
            "relation": self.relation,
            "brief": self.brief,
            "said": [[type(value).__name__, to_document(value)] for value in self.said],
        }
        if self.context is not None:
            asked["context"] = self.context
        if self.grant is not None:
            asked.update(_beyond_may(self.grant))
        # All of it was checked as it came in, item by item and text by text.
        return encode_typed(asked)


def _beyond_may(grant: Grant) -> dict[str, object]:
    """Return what a grant says besides what may be used, which stands in the brief."""
    said = {
        "may delegate": list(grant.may_delegate.lines),
        "limits": str(grant.limits),
        "until": None if grant.until is None else spell_time(grant.until),
        "max depth": grant.max_depth,
    }
    return {name: value for name, value in said.items() if value not in (None, [], "")}


def asked_for(
    *,
    to: str,
    task: str,
    relation: Relation | str,
    carrier: Carrier | str,
    deadline: datetime | None,
    hold: bool,
    key: str | None,
    carry: Iterable[Item] | None,
    context: str | None,
    policy: HandoffPolicy | None,
    grant: Grant | None,
    thought: Thought | None,
    brief: Mapping[str, Any],
    said: Mapping[type[Any], Iterable[ItemValue | str]],
) -> OfferRequest:
    """Return what is asked for. Raises `InvalidValueError` for the first thing that cannot be right."""
    return OfferRequest(
        to=AgentId(to),
        task=task,
        relation=as_member("relation", relation, Relation),
        brief=Brief(**brief),
        said=tuple([value for kind, given in said.items() if given != () for value in items_of(kind, given)]),
        deadline=deadline,
        carrier=as_member("carrier", carrier, Carrier),
        hold=hold,
        key=key,
        carry=None if carry is None else frozenset(item.id for item in carry),
        context=context,
        policy=policy,
        grant=grant,
        thought=thought,
    )


def items_of(kind: type[Any], given: Iterable[ItemValue | str]) -> Sequence[ItemValue]:
    """Return items of one kind; a text alone is the shortest way to write one."""
    if isinstance(given, str):
        raise InvalidValueError(kind.__name__, "is one text; write a list")
    values = [kind(value) if isinstance(value, str) else value for value in given]
    for value in values:
        if not isinstance(value, kind):
            raise InvalidValueError(kind.__name__, f"{type(value).__name__} stands where a {kind.__name__} belongs")
    return values
