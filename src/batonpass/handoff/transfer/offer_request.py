"""The request of a caller to offer a task: checked for its form, before anybody decides about it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct, field

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import as_member, require_instance, require_member, require_text, require_utc, shorten
from batonpass.model.base.ids import AgentId, ContentId, require_agent
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    WorkItem,
)
from batonpass.model.bodies.body import Relation
from batonpass.model.bodies.reasoning import Thought
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.grants.permit import spell_time
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import ChangedInputs, Handling
from batonpass.wire.canonical import encode_typed
from batonpass.wire.documents import to_document

Kind = TypeVar("Kind")

GivenItem: TypeAlias = Constraint | Exclusion | WorkItem | OpenQuestion | RejectedPath | Decision | Assumption | Claim

# The order of kinds in the fingerprint, so that the order in which a caller gives them does not matter. The names are
# those of the lists that programs and models send.
ITEM_KINDS: Final[Mapping[str, type[GivenItem]]] = {
    "constraints": Constraint,
    "exclusions": Exclusion,
    "completed": WorkItem,
    "open_questions": OpenQuestion,
    "rejected_paths": RejectedPath,
    "decisions": Decision,
    "assumptions": Assumption,
    "claims": Claim,
}
_PLACES: Final = {kind: number for number, kind in enumerate(ITEM_KINDS.values())}
_KIND_NAMES: Final = ", ".join(kind.__name__ for kind in _PLACES)


_AS_EVER: Final = Handling()


class OfferRequest(Struct, frozen=True, kw_only=True):
    """A checked request to offer a task; `described` returns the part that decides whether two offers are the same."""

    to: AgentId
    task: str
    relation: Relation = Relation.LEAD_TO_WORKER
    brief: Brief = field(default_factory=Brief)
    said: tuple[ItemValue, ...] = ()
    deadline: datetime | None = None
    carrier: Carrier = Carrier.CALLER
    hold: bool = False
    key: str | None = None
    again: int = 0  # which repetition of the same task it is
    carry: frozenset[ContentId] | None = None  # the items of the sender that travel; None: all
    context: str | None = None  # free text besides the task
    policy: HandoffPolicy | None = None  # applied in addition to that of the relay: it can only refuse more
    grant: Grant | None = None  # the grant that the child is to get
    lasts: timedelta | None = None  # how long the grant lasts, if the caller gave a duration
    retries: int | None = None  # how often it is tried again by itself; None: only if its worker is lost
    inputs: ChangedInputs | None = None  # if it was offered before with other inputs; None: the key decides
    thought: Thought | None = None  # the message of the model; None: the last one that the run noted

    def __post_init__(self) -> None:
        require_agent("to", self.to)
        require_text("task", self.task)
        # The receipt of an offer repeats these two unchecked.
        if type(self.relation) is not Relation or type(self.carrier) is not Carrier:
            require_member("relation", self.relation, Relation)
            require_member("carrier", self.carrier, Carrier)
        if self.key is not None:
            require_text("key", self.key)
        if self.deadline is not None:
            require_utc("deadline", self.deadline)
        if self.context is not None:
            require_text("context", self.context)
        if self.policy is not None:
            require_instance("policy", self.policy, HandoffPolicy)

    def described(self) -> bytes:
        """Return the fields that make up the fingerprint, as canonical JSON."""
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
            asked.update(_beyond_may(self.grant, self.lasts))
        # No check here: every item and every text was checked when it was made.
        return encode_typed(asked)


def _beyond_may(grant: Grant, lasts: timedelta | None) -> dict[str, object]:
    """Return the fields of a grant besides `may`, which is in the brief."""
    said = {
        "may delegate": list(grant.may_delegate.lines),
        "limits": str(grant.limits),
        # A duration and not the moment: "2h" ends at another moment each time, and is the same request.
        "until": f"{lasts} later" if lasts else None if grant.until is None else spell_time(grant.until),
        "max depth": grant.max_depth,
    }
    return {name: value for name, value in said.items() if value not in (None, [], "")}


def asked_for(
    to: str,
    task: str,
    *,
    now: datetime,
    deadline: datetime | None,
    carrier: Carrier | str,
    hold: bool,
    grant: GrantRequest | None,
    brief: BriefRequest | None,
    criteria: Sequence[str],
    items: Iterable[GivenItem],
    handling: Handling | None,
) -> OfferRequest:
    """Return the request of a caller. Raises `InvalidValueError` for the first value that is invalid."""
    may = () if grant is None else grant.may
    written = None if brief is None else _checked("brief", brief, BriefRequest)
    handled = _AS_EVER if handling is None else _checked("handling", handling, Handling)
    recorded = (
        Brief(may=may, criteria=criteria)  # type: ignore[arg-type]  # `Brief` turns them into tuples
        if written is None
        else written.recorded(may=may, criteria=criteria)
    )
    return OfferRequest(
        to=AgentId(to),
        task=task,
        relation=Relation.LEAD_TO_WORKER if written is None else as_member("relation", written.relation, Relation),
        brief=recorded,
        said=given_items(items),
        deadline=deadline,
        carrier=carrier if type(carrier) is Carrier else as_member("carrier", carrier, Carrier),
        hold=hold,
        key=handled.key,
        again=handled.again,
        carry=None if handled.carry is None else frozenset(item.id for item in handled.carry),
        context=None if written is None else written.context,
        policy=handled.policy,
        retries=handled.retries,
        inputs=None if handled.inputs is None else ChangedInputs(handled.inputs),
        grant=None if grant is None else grant.at(now),
        lasts=None if grant is None else grant.lasts,
        thought=None if written is None else written.thought,
    )


def _checked(name: str, given: Kind, kind: type[Kind]) -> Kind:
    if not isinstance(given, kind):
        raise InvalidValueError(name, f"{shorten(given)} is no {name.capitalize()}; write {name.capitalize()}(…)")
    return given


def given_items(items: Iterable[GivenItem]) -> tuple[GivenItem, ...]:
    """Return items sorted by kind, each kind in the order given. Raises `InvalidValueError` for anything else."""
    if items == ():
        return ()
    listed: object = items  # a caller may pass anything
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise InvalidValueError("items", f"{shorten(listed)} is no list; write a list of {_KIND_NAMES}")
    given = tuple(items)
    for item in given:
        _require_item(item)
    return tuple(sorted(given, key=lambda item: _PLACES[type(item)]))


def _require_item(item: object) -> None:
    if isinstance(item, str):
        raise InvalidValueError("items", f"{shorten(item)} does not say what it is; write one of {_KIND_NAMES}")
    if type(item) not in _PLACES:
        raise InvalidValueError("items", f"{type(item).__name__} is none of {_KIND_NAMES}")


def items_by_part(parts: Mapping[str, Iterable[GivenItem | str]]) -> tuple[GivenItem, ...]:
    """Return items from lists of one kind each, in which a plain text is an item. Raises `InvalidValueError`."""
    found: list[GivenItem] = []
    for name, given in parts.items():
        kind = ITEM_KINDS[name]
        if isinstance(given, str):
            raise InvalidValueError(kind.__name__, "is one text; write a list")
        for value in given:
            item = kind(value) if isinstance(value, str) else value
            if not isinstance(item, kind):
                raise InvalidValueError(
                    kind.__name__, f"{type(item).__name__} is given where a {kind.__name__} is needed"
                )
            found.append(item)
    return tuple(found)
