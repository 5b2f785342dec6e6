"""What receipts about a handoff say that stand in the streams of its runs: the offer, the acceptance, the close-out."""

from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_code,
    require_codes,
    require_digest,
    require_digests,
    require_instance,
    require_integer,
    require_member,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RUN,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RunId,
    StreamId,
    require_agent,
    require_id,
    require_ids,
    require_principal,
    require_stream,
)
from batonpass.model.base.kinds import (
    Carried,
    CarriedFate,
    ChildHead,
    Gate,
    Kind,
    Relation,
    Sanitising,
    ScanFound,
    require_carried,
    require_children,
    require_fates,
    require_hold,
)
from batonpass.model.base.label import Label, Source, SourceType, require_label, require_sources
from batonpass.model.base.lifecycle import WAITING, Carrier, State
from batonpass.model.bodies.reasoning import ReasoningPointer


class HandoffInitiated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run offered one task to an agent."""

    kind: ClassVar = Kind.HANDOFF_INITIATED
    handoff: HandoffId
    run: RunId  # the parent
    to: AgentId
    carrier: Carrier
    state: State  # waiting, or held
    relation: Relation = Relation.LEAD_TO_WORKER
    scope: StreamId | None = None  # where its key is unique: the parent's own handoff, or the root run
    key: Digest | None = None  # twice the same key in a scope is the same handoff
    fingerprint: Digest | None = None  # of what the caller gave, keyed with the tree's secret
    deadline: datetime | None = None
    carries: tuple[Carried, ...] = ()
    missing: tuple[str, ...] = ()  # parts that the sender left out without saying that there are none
    unverified: tuple[HandoffId, ...] = ()  # results that it builds on and nobody had verified or accepted
    fates: tuple[CarriedFate, ...] = ()  # of carried items whose result was refuted, superseded, or made from such
    replaces: HandoffId | None = None  # the same task, offered before with inputs that have changed since
    flags: tuple[str, ...] = ()  # what would have held or refused it, had the policy been enforced
    rule: str | None = None  # which rule holds or refuses it
    gate: Gate | None = None  # who has to let it go on
    until: datetime | None = None  # when it is denied, if nobody has by then
    proven: bool = False  # it takes a decision that an approver's key signed
    approvals: int = 1  # so many people have to let it go on, none of whom asked for it if they are several
    label: Label | None = None  # of all that its sender knew
    taint: tuple[Source, ...] = ()  # what of that came from outside, and nobody endorsed
    terms: Digest | None = None  # of what is granted; None: the child is not held to a grant
    reasoning: ReasoningPointer | None = None  # what its sender thought last; None: nobody knows where that stands

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("run", self.run, RUN)
        require_agent("to", self.to)
        require_member("carrier", self.carrier, Carrier)
        require_member("state", self.state, State)
        if self.state not in {State.HELD, WAITING[self.carrier]}:
            raise InvalidValueError("state", f"a {self.carrier}-carried handoff cannot begin {self.state}")
        require_member("relation", self.relation, Relation)
        if self.scope is not None:
            require_stream("scope", self.scope)
        if self.key is not None:
            require_digest("key", self.key)
        if self.fingerprint is not None:
            require_digest("fingerprint", self.fingerprint)
        if (self.scope, self.fingerprint).count(None) != 2 * (self.key is None):
            raise InvalidValueError("key", "a key, its scope and a fingerprint come together")
        if self.deadline is not None:
            require_utc("deadline", self.deadline)
        require_carried("carries", self.carries)
        require_codes("missing", self.missing)
        require_ids("unverified", self.unverified, HANDOFF)
        require_fates(self.fates)
        if self.replaces is not None:
            require_id("replaces", self.replaces, HANDOFF)
        require_codes("flags", self.flags)
        if self.rule is not None:
            require_code("rule", self.rule)
        require_hold(self.gate, self.until)
        require_instance("proven", self.proven, bool)
        require_integer("approvals", self.approvals, least=1)
        require_label("label", self.label)
        require_sources("taint", self.taint)
        require_digests(terms=self.terms)
        if self.reasoning is not None:
            require_instance("reasoning", self.reasoning, ReasoningPointer)


class HandoffAccepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent took a handoff; this begins the run of that attempt."""

    kind: ClassVar = Kind.HANDOFF_ACCEPTED
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: int
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey
    baton: Digest | None = None  # the receipt of the latest revision of the baton, countersigned by this one
    problems: tuple[str, ...] = ()  # what validation found and did not stop it
    would_ask: bool = False  # it would have asked; a budget, or mere observation, kept it from it
    policy: Digest | None = None  # sha256 of the file with the policy that decides about this run
    label: Label | None = None  # of what it begins with
    certificate: Digest | None = None  # what binds the attempt's key to the terms of the offer

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("parent", self.parent, RUN)
        require_id("run", self.run, RUN)
        require_integer("attempt", self.attempt, least=1)
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        require_digest("run_key", self.run_key)
        if self.baton is not None:
            require_digest("baton", self.baton)
        require_codes("problems", self.problems)
        require_instance("would_ask", self.would_ask, bool)
        require_digests(policy=self.policy, certificate=self.certificate)
        require_label("label", self.label)


class _CloseOut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: int
    children: tuple[ChildHead, ...] = ()
    effects: tuple[CallId, ...] = ()  # the calls that changed something
    unverified: tuple[HandoffId, ...] = ()  # results that it went on with and nobody had verified or accepted
    kept: int = 0  # calls whose results came from an earlier attempt
    keeps: tuple[CallId, ...] = ()  # which calls those were
    gives: tuple[Carried, ...] = ()  # what it found out and attached: its parent hands that on
    flags: tuple[str, ...] = ()  # what is wrong with the result: a constraint it breaks, a target it left untouched
    label: Label | None = None  # of what it gives back
    taint: tuple[Source, ...] = ()  # what it took in from outside, and nobody endorsed

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("parent", self.parent, RUN)
        require_id("run", self.run, RUN)
        require_integer("attempt", self.attempt, least=0 if isinstance(self, HandoffFailed) else 1)
        require_children(self.children)
        require_ids("effects", self.effects, CALL)
        require_ids("unverified", self.unverified, HANDOFF)
        require_integer("kept", self.kept)
        require_ids("keeps", self.keeps, CALL)
        require_carried("gives", self.gives)
        require_codes("flags", self.flags)
        require_label("label", self.label)
        require_sources("taint", self.taint)


class HandoffCompleted(_CloseOut, frozen=True, kw_only=True):
    """A child delivered; provisional until somebody verifies it."""

    kind: ClassVar = Kind.HANDOFF_COMPLETED


class HandoffFailed(_CloseOut, frozen=True, kw_only=True):
    """A child ended without delivering, or was never begun because a policy refused the offer (attempt 0).

    The error code says what, the content says how. A refusal stands in the stream of the run that wanted to hand off.
    """

    kind: ClassVar = Kind.HANDOFF_FAILED
    error: str | None = None
    to: AgentId | None = None  # of a refusal: who was not to be handed the work

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_refusal and (self.parent != self.run or self.to is None or self.error is None):
            raise InvalidValueError("attempt", "a refused offer names its own run as parent, to whom it was, and why")
        if self.to is not None:
            require_agent("to", self.to)
        if self.error is not None:
            require_code("error", self.error)

    @property
    def is_refusal(self) -> bool:
        """Return whether nothing ever ran: a policy refused the offer."""
        return self.attempt == 0


class HandoffContextSanitized(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a sender says was scanned: what was found, and what was done about it."""

    kind: ClassVar = Kind.HANDOFF_CONTEXT_SANITIZED
    handoff: HandoffId
    run: RunId  # the parent
    action: Sanitising
    label: SourceType  # whose words these count as
    scanned: int  # how many texts
    found: tuple[ScanFound, ...] = ()
    context: ContentId | None = None  # the item of the baton that holds what was said besides the task

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("run", self.run, RUN)
        require_member("action", self.action, Sanitising)
        require_member("label", self.label, SourceType)
        require_integer("scanned", self.scanned)
        for found in require_instance("found", self.found, tuple):
            require_instance("found", found, ScanFound)
        require_unique("found", [f"{found.place} {found.rule}" for found in self.found])
        if self.context is not None:
            require_id("context", self.context, CONTENT)
