"""What a handoff must say, and when its receiver asks. Without a policy everything is reported and nothing refused."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_integer, require_texts, shorten
from batonpass.model.base.ids import require_agent
from batonpass.model.base.kinds import Relation
from batonpass.model.baton.baton import PARTS


class HandoffPolicy(Struct, frozen=True, kw_only=True):
    """The rules that a relay applies to the handoffs it carries."""

    require: Mapping[Relation, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))  # else refused
    verified_only: bool = False  # nobody goes on with a result that nobody verified or accepted
    asks: bool = False  # a receiver that cannot reliably go on asks; else it is recorded that it would have
    questions: int = 1  # at most so many for one handoff
    hops_between_questions: int = 5
    oldest: timedelta | None = None  # how old a claim may be
    max_depth: int | None = None  # so many agents may stand in one signed lineage; a further hop is refused
    allowed_agents: Collection[str] | None = None  # by stable id, who may be handed work; None: everybody, (): nobody
    refuse_loops: bool = False  # nobody is asked for what they were asked for further up, and wait for
    sanitize_context: bool = True  # scan what a sender says besides the task; what looks injected is quarantined
    trust_degradation: bool = True  # a sender's words count as a model's, also where they repeat the human's

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
            require_instance("oldest", self.oldest, timedelta)
        require_instance("verified_only", self.verified_only, bool)
        require_instance("asks", self.asks, bool)
        require_integer("questions", self.questions)
        require_integer("hops_between_questions", self.hops_between_questions)
        if self.max_depth is not None:
            require_integer("max_depth", self.max_depth, least=1)
        if self.allowed_agents is not None:
            force_setattr(self, "allowed_agents", require_texts("allowed_agents", self.allowed_agents))
            for agent in self.allowed_agents:
                require_agent("allowed_agents", agent)
        require_instance("refuse_loops", self.refuse_loops, bool)
        require_instance("sanitize_context", self.sanitize_context, bool)
        require_instance("trust_degradation", self.trust_degradation, bool)


# Of a relay that was given no policy: nothing is refused, and nothing is looked into.
UNRULED: Final = HandoffPolicy(sanitize_context=False)
