"""What a policy says: rules by pattern, gates by tier, and what each kind of handoff has to bring along."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_text,
    require_texts,
)
from batonpass.model.base.ids import AgentId, Digest, PrincipalId, is_user, require_principal
from batonpass.model.base.kinds import Gate, Part, Relation
from batonpass.model.baton.baton import PARTS, RATIONALE
from batonpass.model.grants.grant import Grant
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.model.policy.handoff_policy import UNRULED, HandoffPolicy

# A flag is `would_hold.` and the name, and a code has 64 characters.
LONGEST_NAME: Final = 48
MOST_APPROVALS: Final = 9

# Names of what is judged without a rule: `tier.irreversible`, `method.lead-to-worker`.
TIER: Final = "tier"
METHOD: Final = "method"
VERIFICATION: Final = "verification"
VERBATIM: Final = "verbatim"
REQUIRE: Final = "require"
AGENTS: Final = "agents"
DEPTH: Final = "depth"
RENEW: Final = "renew"
TAINT: Final = "taint"
READERS: Final = "readers"
RESERVED: Final = frozenset({TIER, METHOD, VERIFICATION, VERBATIM, REQUIRE, AGENTS, DEPTH, RENEW, TAINT, READERS})


class Tier(StrEnum):
    """How much depends on a call or a delegation, as its tool or its offer declares it."""

    REVERSIBLE = "reversible"
    COSTLY = "costly"
    IRREVERSIBLE = "irreversible"
    EXTERNAL_WRITE = "external-write"
    BUDGETED_DELEGATION = "budgeted-delegation"
    UNDECLARED = "undeclared"  # it changes something, and nobody said whether that can be undone


class Subject(StrEnum):
    """What a rule is about."""

    HANDOFF = "handoff"
    CALL = "call"


class Posture(StrEnum):
    """How far whoever receives a handoff trusts what it brings."""

    EVALUATE = "evaluate"
    MAY_REJECT = "may-reject"
    VERIFY = "verify-independently"
    UNTRUSTED = "untrusted"


class Demand(StrEnum):
    """What becomes of a handoff that lacks something."""

    NONE = "none"
    REPORT = "report"
    REFUSE = "refuse"


STRICTNESS: Final = (Gate.NONE, Gate.CONFIRM, Gate.APPROVE, Gate.DENY)
OF_HANDOFFS: Final = frozenset({Tier.BUDGETED_DELEGATION})


class Rule(Struct, frozen=True, kw_only=True):
    """A gate for handoffs or calls that fit all of its patterns; what is not given fits everything."""

    name: str
    on: Subject
    gate: Gate
    agent: str | None = None  # of a call, who makes it; of a handoff, who is asked
    tool: str | None = None
    action: str | None = None  # of a call, `read` or `write`; of a handoff, one that it asks for
    target: str | None = None
    relation: Relation | None = None
    tier: Tier | None = None
    depth: int | None = None  # from so many hops below the root on
    approvals: int = 1  # so many people have to approve; if more than one, none of them asked for it
    line: int | None = None  # where it is written

    def __post_init__(self) -> None:
        require_code("name", self.name)
        if len(self.name) > LONGEST_NAME:
            raise InvalidValueError("name", f"has {len(self.name)} characters; at most {LONGEST_NAME} fit into a flag")
        if self.name.partition(".")[0] in RESERVED:
            raise InvalidValueError("name", f"{self.name!r} is taken; a name begins with none of {_listed(RESERVED)}")
        require_member("on", self.on, Subject)
        require_member("gate", self.gate, Gate)
        for name in ("agent", "tool", "action", "target"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        if self.relation is not None:
            require_member("relation", self.relation, Relation)
        if self.tier is not None:
            require_member("tier", self.tier, Tier)
        if self.depth is not None:
            require_integer("depth", self.depth, least=1)
        require_integer("approvals", self.approvals, least=1)
        self._require_fitting()

    def _require_fitting(self) -> None:
        # A pattern that can never fit would look like protection, and be none.
        if self.on is Subject.HANDOFF and self.tool is not None:
            raise InvalidValueError("tool", 'a handoff has no tool; write on = "call", or leave it out')
        if self.on is Subject.CALL and self.relation is not None:
            raise InvalidValueError("relation", 'a call has no relation; write on = "handoff", or leave it out')
        if self.tier is not None and (self.tier in OF_HANDOFFS) is not (self.on is Subject.HANDOFF):
            fitting = [tier for tier in Tier if (tier in OF_HANDOFFS) is (self.on is Subject.HANDOFF)]
            raise InvalidValueError("tier", f"a {self.on} is never {self.tier}; it is one of {', '.join(fitting)}")
        if self.approvals > 1 and self.gate is not Gate.APPROVE:
            raise InvalidValueError("approvals", 'several people approve; write gate = "approve", or leave it out')
        if self.approvals > MOST_APPROVALS:
            raise InvalidValueError("approvals", f"{self.approvals} people will never look at it; {MOST_APPROVALS} may")


class Requirement(Struct, frozen=True, kw_only=True):
    """What one kind of handoff has to bring along, and how far what it brings is trusted."""

    posture: Posture
    minimum: tuple[str, ...] = ()  # parts whose absence is reported
    require: tuple[str, ...] = ()  # parts without which it is refused
    method: Demand = Demand.NONE  # a way to tell whether the result holds: contract first
    verification: Demand = Demand.NONE  # it builds on no result that nobody verified or accepted
    verbatim: Demand = Demand.NONE  # its task is not the text that came from outside

    def __post_init__(self) -> None:
        require_member("posture", self.posture, Posture)
        for name in ("minimum", "require"):
            parts = require_texts(name, getattr(self, name))
            force_setattr(self, name, parts)
            if unknown := sorted(set(parts) - PARTS):
                raise InvalidValueError(name, f"{', '.join(unknown)} is no part of a baton; there are {_listed(PARTS)}")
        for name in (METHOD, VERIFICATION, VERBATIM):
            require_member(name, getattr(self, name), Demand)


# The decision table that is shipped. Nothing in it refuses; a file that says `refuse` or `require` does.
REQUIREMENTS: Final[Mapping[Relation, Requirement]] = MappingProxyType(
    {
        Relation.WORKER_TO_LEAD: Requirement(
            posture=Posture.EVALUATE,
            minimum=(Part.COMPLETED, Part.QUESTION, Part.ASSUMPTION),
            verification=Demand.REPORT,
        ),
        Relation.LEAD_TO_WORKER: Requirement(
            posture=Posture.MAY_REJECT,
            minimum=(RATIONALE, Part.CONSTRAINT),
            method=Demand.REPORT,
        ),
        Relation.PEER_TO_PEER: Requirement(
            posture=Posture.VERIFY,
            minimum=(Part.COMPLETED,),  # who made it, and under which instructions, is signed into every offer
            verification=Demand.REPORT,
        ),
        Relation.EXTERNAL_TO_AGENT: Requirement(
            posture=Posture.UNTRUSTED,
            minimum=(Part.UNTRUSTED,),
            verification=Demand.REPORT,
            verbatim=Demand.REPORT,
        ),
    },
)

# Most handoffs and calls are low-stakes: only what leaves us, costs others or cannot be undone has a gate.
TIERS: Final[Mapping[Tier, Gate]] = MappingProxyType(
    {
        Tier.REVERSIBLE: Gate.NONE,
        Tier.COSTLY: Gate.CONFIRM,
        Tier.IRREVERSIBLE: Gate.APPROVE,
        Tier.EXTERNAL_WRITE: Gate.APPROVE,
        Tier.BUDGETED_DELEGATION: Gate.CONFIRM,
        Tier.UNDECLARED: Gate.NONE,
    },
)


class Policy(Struct, frozen=True, kw_only=True):
    """All that a relay is told about handoffs and calls; without a file, the shipped table, which only reports."""

    handoffs: HandoffPolicy = UNRULED
    requirements: Mapping[Relation, Requirement] = field(default_factory=lambda: REQUIREMENTS)
    tiers: Mapping[Tier, Gate] = field(default_factory=lambda: TIERS)
    rules: tuple[Rule, ...] = ()
    enforce: bool = False  # gates hold and deny in observed runs as well
    hold_for: timedelta | None = None  # what nobody approves for so long is denied
    proven: bool | None = None  # what takes a person takes their key; None: as soon as somebody has one here
    approvers: Mapping[PrincipalId, ApproverScope] = field(
        default_factory=lambda: MappingProxyType({})
    )  # who may approve what; empty: every person everything
    commit_endorses: bool = True  # who commits what a tainted run wrote answers for it
    renew_every: int | None = None  # at every so many hops a person renews the grant, or it stops
    renewal: Gate = Gate.APPROVE
    allowed_agents: tuple[str, ...] | None = None  # patterns; None allows all
    grants: Mapping[AgentId, Grant] = field(
        default_factory=lambda: MappingProxyType({})
    )  # by agent, where it is enforced
    digest: Digest | None = None  # of the file's bytes; None if there is no file
    file: str | None = None
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # by name, where it is written

    def __post_init__(self) -> None:
        require_instance("handoffs", self.handoffs, HandoffPolicy)
        force_setattr(self, "requirements", MappingProxyType({**REQUIREMENTS, **self.requirements}))
        force_setattr(self, "tiers", MappingProxyType({**TIERS, **self.tiers}))
        names: set[str] = set()
        for rule in self.rules:
            require_instance("rules", rule, Rule)
            if rule.name in names:
                raise InvalidValueError("name", f"two rules are called {rule.name}; each needs a name of its own")
            names.add(rule.name)
        require_instance("enforce", self.enforce, bool)
        self._require_people()
        require_instance("commit_endorses", self.commit_endorses, bool)
        if self.hold_for is not None and require_instance("hold_for", self.hold_for, timedelta) <= timedelta(0):
            raise InvalidValueError("hold_for", "a hold lasts for a while")
        if self.renew_every is not None:
            require_integer("renew_every", self.renew_every, least=1)
        if self.renewal not in {Gate.APPROVE, Gate.DENY}:
            raise InvalidValueError("renewal", f"{self.renewal!r}: a person renews (approve), or it stops (deny)")
        if self.allowed_agents is not None:
            force_setattr(self, "allowed_agents", require_texts("allowed_agents", self.allowed_agents))
        if self.digest is not None:
            require_digest("digest", self.digest)

    def _require_people(self) -> None:
        if self.proven is not None:
            require_instance("proven", self.proven, bool)
        for principal, scope in require_instance("approvers", self.approvers, Mapping).items():
            require_instance("approvers", scope, ApproverScope)
            if not is_user(require_principal("approvers", principal)):
                raise InvalidValueError("approvers", f"{principal} is no person, and nobody else approves")

    @property
    def needs_depth(self) -> bool:
        """Return whether anything here depends on how deep a chain is; finding that out costs a look at each hop."""
        if self.renew_every is not None or self.handoffs.max_depth is not None:
            return True
        return bool(self.rules) and any(rule.depth is not None for rule in self.rules)

    def minimum(self, relation: Relation) -> tuple[str, ...]:
        """Return the parts whose absence is reported for a kind of handoff."""
        return self.requirements[relation].minimum

    def where(self, name: str) -> str:
        """Return where a name is written: file and line, or that it is shipped."""
        line = self.lines.get(name)
        return "the shipped policy" if self.file is None or line is None else f"{self.file}:{line}"


def _listed(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))
