"""The rules for batons, receivers and chains. Without a policy everything is reported and nothing is refused."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_integer, require_texts, shorten
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import require_agent
from batonpass.model.base.kinds import Relation
from batonpass.model.baton.baton import PARTS


class HandoffPolicy(Struct, frozen=True, kw_only=True):
    """The rules that a relay applies to handoffs."""

    require: Mapping[Relation, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))  # else refused
    verified_only: bool = False  # nobody may build on a result that is neither verified nor waived
    asks: bool = False  # a receiver with a doubtful baton asks; otherwise only `would_ask` is recorded
    questions: int = 1  # the most for one handoff about doubts; blocking problems are asked about until settled
    hops_between_questions: int = 5
    oldest: timedelta | str | None = None  # the greatest age of a claim: a duration, or a text such as "7d"
    max_depth: int | None = None  # the most agents in one signed lineage; one more hop is refused
    # The most attempts that begin by themselves; then the handoff has failed until somebody retries it. None: five,
    # unless another policy for the same handoff says how many. So a policy about something else does not say five.
    max_attempts: int | None = None
    allowed_agents: Collection[str] | None = None  # ids of possible receivers; None: everybody, (): nobody
    known_agents: bool = False  # refuse work for workers to an agent that nobody registered, introduced or ran
    refuse_loops: bool = False  # refuse a task that its receiver already got further up, and waits for
    sanitize_context: bool = True  # scan free text, and quarantine text that looks like an injection
    trust_degradation: bool = True  # a sender's words have a model's label, even if they repeat the human's

    def __post_init__(self) -> None:
        wanted: dict[Relation, tuple[str, ...]] = {}
        for relation, given in require_instance("require", self.require, Mapping).items():
            if relation not in set(Relation):
                raise InvalidValueError("require", f"{shorten(relation)} is not one of {', '.join(Relation)}")
            parts = wanted[Relation(relation)] = require_texts("require", given)
            if unknown := sorted(set(parts) - PARTS):
                known = ", ".join(sorted(PARTS))
                raise InvalidValueError("require", f"{', '.join(unknown)} is no part of a baton; there are {known}")
        force_setattr(self, "require", MappingProxyType(wanted))
        if self.oldest is not None:
            force_setattr(self, "oldest", as_duration("oldest", self.oldest))
        require_instance("verified_only", self.verified_only, bool)
        require_instance("asks", self.asks, bool)
        require_integer("questions", self.questions)
        require_integer("hops_between_questions", self.hops_between_questions)
        if self.max_depth is not None:
            require_integer("max_depth", self.max_depth, least=1)
        if self.max_attempts is not None:
            require_integer("max_attempts", self.max_attempts, least=1)
        if self.allowed_agents is not None:
            force_setattr(self, "allowed_agents", require_texts("allowed_agents", self.allowed_agents))
            for agent in self.allowed_agents:
                require_agent("allowed_agents", agent)
        require_instance("known_agents", self.known_agents, bool)
        require_instance("refuse_loops", self.refuse_loops, bool)
        require_instance("sanitize_context", self.sanitize_context, bool)
        require_instance("trust_degradation", self.trust_degradation, bool)

    def joined(self, other: "HandoffPolicy") -> "HandoffPolicy":
        """Return a policy that requires everything that either of the two requires."""
        allowed = [set(given) for given in (self.allowed_agents, other.allowed_agents) if given is not None]
        # How often a receiver asks is said by those who let it ask.
        asking = [policy for policy in (self, other) if policy.asks] or [self, other]
        return HandoffPolicy(
            require={
                relation: tuple(dict.fromkeys((*self.require.get(relation, ()), *other.require.get(relation, ()))))
                for relation in {**self.require, **other.require}
            },
            verified_only=self.verified_only or other.verified_only,
            asks=self.asks or other.asks,
            questions=min(policy.questions for policy in asking),
            hops_between_questions=max(policy.hops_between_questions for policy in asking),
            oldest=_least(self.claim_age, other.claim_age),
            max_depth=_least(self.max_depth, other.max_depth),
            allowed_agents=tuple(sorted(set.intersection(*allowed))) if allowed else None,
            refuse_loops=self.refuse_loops or other.refuse_loops,
            known_agents=self.known_agents or other.known_agents,
            max_attempts=_least(self.max_attempts, other.max_attempts),
            sanitize_context=self.sanitize_context or other.sanitize_context,
            trust_degradation=self.trust_degradation or other.trust_degradation,
        )

    @property
    def claim_age(self) -> timedelta | None:
        """Return the greatest age of a claim; None for any age."""
        return None if self.oldest is None else as_duration("oldest", self.oldest)

    @property
    def attempts(self) -> int:
        """Return how many attempts at a handoff begin by themselves at most."""
        return _ATTEMPTS if self.max_attempts is None else self.max_attempts

    @property
    def binds_receiver(self) -> bool:
        """Return whether some of it is obeyed only after the offer: at receipt, at the report, or after a failure."""
        later = self.asks or self.verified_only or self.sanitize_context or self.oldest is not None
        return later or self.max_attempts is not None or bool(self.require.get(Relation.WORKER_TO_LEAD))


_ATTEMPTS: Final = 5
_Ordered = TypeVar("_Ordered", int, timedelta)


def _least(one: _Ordered | None, other: _Ordered | None) -> _Ordered | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


# For a relay without a policy: nothing is refused, and nothing is scanned.
UNRULED: Final = HandoffPolicy(sanitize_context=False)
