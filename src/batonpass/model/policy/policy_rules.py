"""The policy as values: rules, tiers with their gates, and requirements for each kind of handoff."""

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
from batonpass.model.policy.tool_pattern import ToolPattern, read_tools

# A flag is `would_hold.` and the name of the rule, and a code has at most 64 characters.
LONGEST_NAME: Final = 48
MOST_APPROVALS: Final = 9

# Names of judgements without a rule of their own: `tier.irreversible`, `method.lead-to-worker`. No rule may begin so.
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
    """How much harm a call or a delegation can do, as its tool or its offer declares it."""

    REVERSIBLE = "reversible"
    COSTLY = "costly"
    IRREVERSIBLE = "irreversible"
    EXTERNAL_WRITE = "external-write"
    BUDGETED_DELEGATION = "budgeted-delegation"
    UNDECLARED = "undeclared"  # it changes something, and nobody declared whether that can be undone


class Subject(StrEnum):
    """Whether a rule is about handoffs or calls."""

    HANDOFF = "handoff"
    CALL = "call"


class Posture(StrEnum):
    """How far the receiver of a handoff trusts its baton."""

    EVALUATE = "evaluate"
    MAY_REJECT = "may-reject"
    VERIFY = "verify-independently"
    UNTRUSTED = "untrusted"


class Demand(StrEnum):
    """The reaction to a handoff that lacks something."""

    NONE = "none"
    REPORT = "report"
    REFUSE = "refuse"


class DoorName(StrEnum):
    """The door through which calls of other programs come. Calls of our own runs have none."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    COPILOT = "copilot"
    QWEN = "qwen"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    CURSOR = "cursor"
    DROID = "droid"
    CLINE = "cline"
    MCP = "mcp"


STRICTNESS: Final = (Gate.NONE, Gate.CONFIRM, Gate.APPROVE, Gate.DENY)
OF_HANDOFFS: Final = frozenset({Tier.BUDGETED_DELEGATION})

# What no model does by itself, even where its run is only observed: it leaves us, costs others or cannot be undone.
HARMFUL: Final = frozenset(
    f"{TIER}.{tier}" for tier in (Tier.IRREVERSIBLE, Tier.EXTERNAL_WRITE, Tier.BUDGETED_DELEGATION)
)


# The name of an agent that a rule leaves out begins with this: `agent = ["*", "!lead"]`.
NOT: Final = "!"


class Rule(Struct, frozen=True, kw_only=True):
    """A gate for handoffs or calls that match all of its patterns. A pattern that is None matches everything."""

    name: str
    on: Subject
    gate: Gate
    agent: str | tuple[str, ...] | None = None  # for a call, the caller; for a handoff, the receiver
    tool: str | tuple[str, ...] | None = None  # by name, and perhaps by what it is used on: `Bash(git push *)`
    unless: tuple[str, ...] = ()  # calls of these tools do not match, whatever else does
    action: str | None = None  # for a call, `read` or `write`; for a handoff, an action that it asks for
    target: str | None = None
    relation: Relation | None = None
    tier: Tier | None = None
    depth: int | None = None  # matches from this many hops below the root
    door: DoorName | None = None  # through which the call comes
    alarm: str | None = None  # matches an agent in alarm at such a kind of task; `*`: at any
    approvals: int = 1  # how many people must approve; if more than one, none of them asked for it
    line: int | None = None  # its line in the policy file

    def __post_init__(self) -> None:
        require_code("name", self.name)
        if len(self.name) > LONGEST_NAME:
            raise InvalidValueError("name", f"has {len(self.name)} characters; at most {LONGEST_NAME} fit into a flag")
        if self.name.partition(".")[0] in RESERVED:
            raise InvalidValueError("name", f"{self.name!r} is taken; a name begins with none of {_listed(RESERVED)}")
        require_member("on", self.on, Subject)
        require_member("gate", self.gate, Gate)
        for name in ("action", "target", "alarm"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        for name, found in (("agent", self.agents), ("tool", self.tools)):
            if not found and getattr(self, name) is not None:
                raise InvalidValueError(name, "is an empty list, which never matches; leave it out, or name one")
        force_setattr(self, "unless", require_texts("except", self.unless))
        for name, kinds in (("relation", Relation), ("tier", Tier), ("door", DoorName)):
            if (given := getattr(self, name)) is not None:
                require_member(name, given, kinds)
        if self.depth is not None:
            require_integer("depth", self.depth, least=1)
        require_integer("approvals", self.approvals, least=1)
        self._require_fitting()

    @property
    def agents(self) -> tuple[str, ...]:
        """Return the patterns for agents."""
        if self.agent is None:
            return ()
        given = (self.agent,) if isinstance(self.agent, str) else self.agent
        return require_texts("agent", given)

    @property
    def tools(self) -> tuple[ToolPattern, ...]:
        """Return the patterns for tools."""
        return read_tools("tool", self.tool)

    @property
    def excepted(self) -> tuple[ToolPattern, ...]:
        """Return the patterns for tools that do not match."""
        return read_tools("except", self.unless)

    def _require_fitting(self) -> None:
        # A pattern that can never match would look like protection, and protect nothing.
        if self.on is Subject.HANDOFF:
            for name, given in (("tool", self.tools), ("except", self.excepted), ("door", self.door)):
                if given:
                    raise InvalidValueError(name, f'a handoff has no {name}; write on = "call", or leave it out')
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
    """The parts that one kind of handoff must have, and how far its baton is trusted."""

    posture: Posture
    minimum: tuple[str, ...] = ()  # parts that are reported if missing
    require: tuple[str, ...] = ()  # parts without which it is refused
    method: Demand = Demand.NONE  # it must say how its result can be verified
    verification: Demand = Demand.NONE  # it must not build on a result that is neither verified nor waived
    verbatim: Demand = Demand.NONE  # its task must not be text from outside

    def __post_init__(self) -> None:
        require_member("posture", self.posture, Posture)
        for name in ("minimum", "require"):
            parts = require_texts(name, getattr(self, name))
            force_setattr(self, name, parts)
            if unknown := sorted(set(parts) - PARTS):
                raise InvalidValueError(name, f"{', '.join(unknown)} is no part of a baton; there are {_listed(PARTS)}")
        for name in (METHOD, VERIFICATION, VERBATIM):
            require_member(name, getattr(self, name), Demand)


# The shipped table only reports. A policy file can say `refuse` or `require`.
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
            minimum=(Part.COMPLETED,),  # who made it, under which instructions: that is signed into every offer
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

# Most handoffs and calls can do little harm. Only those that leave us, cost others or cannot be undone have a gate.
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


DAY: Final = timedelta(days=1)


class Policy(Struct, frozen=True, kw_only=True):
    """All rules of a relay. Without a file it is the shipped table, which only reports."""

    handoffs: HandoffPolicy = UNRULED
    requirements: Mapping[Relation, Requirement] = field(default_factory=lambda: REQUIREMENTS)
    tiers: Mapping[Tier, Gate] = field(default_factory=lambda: TIERS)
    rules: tuple[Rule, ...] = ()
    enforce: bool = False  # gates also hold and deny in observed runs
    hold_for: timedelta | None = None  # a hold that nobody has approved by then is denied
    approval_lasts: timedelta = DAY  # an approval that was not used by then is void
    proven: bool | None = None  # whether an approval needs the person's key; None: once an approver's key is enrolled
    approvers: Mapping[PrincipalId, ApproverScope] = field(
        default_factory=lambda: MappingProxyType({})
    )  # what each approver may approve; empty: every person may approve everything
    commit_endorses: bool = True  # a person who commits files of a tainted run endorses them
    renew_every: int | None = None  # after every so many hops a person must renew the grant
    renewal: Gate = Gate.APPROVE  # `approve`: a person renews; `deny`: the chain ends there
    allowed_agents: tuple[str, ...] | None = None  # patterns; None: all
    grants: Mapping[AgentId, Grant] = field(default_factory=lambda: MappingProxyType({}))  # defaults, by agent
    digest: Digest | None = None  # of the policy file's bytes; None if there is no file
    file: str | None = None
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # by name, its line in the file

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
        if require_instance("approval_lasts", self.approval_lasts, timedelta) <= timedelta(0):
            raise InvalidValueError("approval_lasts", "an approval lasts for a while")
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
                raise InvalidValueError("approvers", f"{principal} is no person, and only people approve")

    @property
    def needs_depth(self) -> bool:
        """Return whether any rule depends on the depth of a chain. Finding the depth costs a look at each hop."""
        if self.renew_every is not None or self.handoffs.max_depth is not None:
            return True
        return bool(self.rules) and any(rule.depth is not None for rule in self.rules)

    @property
    def needs_use(self) -> bool:
        """Return whether any rule depends on the object of a call. Finding it means reading commands."""
        return any(pattern.of is not None for rule in self.rules for pattern in (*rule.tools, *rule.excepted))

    @property
    def needs_alarms(self) -> bool:
        """Return whether any rule depends on alarms. Finding those of an agent costs a look into the ledger."""
        return bool(self.rules) and any(rule.alarm is not None for rule in self.rules)

    def minimum(self, relation: Relation) -> tuple[str, ...]:
        """Return the parts that are reported if a handoff of this kind lacks them."""
        return self.requirements[relation].minimum

    def where(self, name: str) -> str:
        """Return the file and line of a name, or that it is shipped."""
        line = self.lines.get(name)
        return "the shipped policy" if self.file is None or line is None else f"{self.file}:{line}"


def _listed(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))
