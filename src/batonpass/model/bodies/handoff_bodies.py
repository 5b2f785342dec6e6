"""The bodies about a handoff in the streams of its runs: the offer, the acceptance, the close-out."""

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
from batonpass.model.base.trace import TraceParent, require_traceparent
from batonpass.model.bodies.reasoning import ReasoningPointer


class HandoffInitiated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run offered one task to an agent."""

    kind: ClassVar = Kind.HANDOFF_INITIATED
    handoff: HandoffId
    run: RunId  # the parent
    to: AgentId
    carrier: Carrier
    state: State  # waiting or held
    relation: Relation = Relation.LEAD_TO_WORKER
    scope: StreamId | None = None  # where its key is unique: the parent's own handoff, or the root run
    key: Digest | None = None  # the same key in the same scope is the same handoff
    fingerprint: Digest | None = None  # of the caller's input, keyed with the tree's secret
    deadline: datetime | None = None
    retries: int | None = None  # how often it is tried again by itself if it fails; None: only if its worker is lost
    carries: tuple[Carried, ...] = ()
    missing: tuple[str, ...] = ()  # expected parts that the sender left out and did not declare as empty
    unverified: tuple[HandoffId, ...] = ()  # results that it builds on, and that are neither verified nor waived
    fates: tuple[CarriedFate, ...] = ()  # of carried items whose result no longer stands
    replaces: HandoffId | None = None  # an earlier offer of the same task, whose inputs have changed since
    flags: tuple[str, ...] = ()  # such as `would_hold.RULE`: it would have stopped it if it were enforced
    rule: str | None = None  # the rule that holds it
    gate: Gate | None = None  # who must approve
    until: datetime | None = None  # denied then, if nobody has approved
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: int = 1  # how many people must approve; if more than one, none of them asked for it
    label: Label | None = None  # of everything that its sender knew
    taint: tuple[Source, ...] = ()  # sources that had reached the sender, and that nobody endorsed
    terms: Digest | None = None  # of the grant; None: the child has no grant of its own
    reasoning: ReasoningPointer | None = None  # where the sender's last reasoning is; None: unknown
    suspect: tuple[str, ...] = ()  # fields and items of its sender that look like an injection: quoted, never orders
    trace: TraceParent | None = None  # the caller's trace in which it was offered

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
        require_integer("retries", 0 if self.retries is None else self.retries)
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
        require_codes("suspect", self.suspect)
        require_traceparent("trace", self.trace)


class HandoffAccepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent accepted a handoff. This is the first receipt of the attempt's run."""

    kind: ClassVar = Kind.HANDOFF_ACCEPTED
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: int  # attempt number, from 1
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey
    baton: Digest | None = None  # the receipt of the baton's latest revision, countersigned by this one
    problems: tuple[str, ...] = ()  # findings of validation that did not stop it
    would_ask: bool = False  # it had a question, and a limit or the mere observation kept it from asking
    policy: Digest | None = None  # sha256 of the policy file that applies to this run
    label: Label | None = None  # of the content that it starts with
    certificate: Digest | None = None  # binds the key of this attempt to the terms of the offer

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
    children: tuple[ChildHead, ...] = ()  # the heads of its children's streams
    effects: tuple[CallId, ...] = ()  # the calls that changed something
    unverified: tuple[HandoffId, ...] = ()  # results that it used, and that are neither verified nor waived
    kept: int = 0  # how many calls have results of an earlier attempt
    keeps: tuple[CallId, ...] = ()  # those calls
    gives: tuple[Carried, ...] = ()  # items that it recorded and attached: its parent can hand them on
    flags: tuple[str, ...] = ()  # problems of the result: a constraint that it breaks, a target that it left untouched
    label: Label | None = None  # of its report
    taint: tuple[Source, ...] = ()  # sources that reached it, and that nobody endorsed
    waiting: tuple[HandoffId, ...] = ()  # its handoffs that somebody still has to approve or answer

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_id("parent", self.parent, RUN)
        require_id("run", self.run, RUN)
        require_ids("waiting", self.waiting, HANDOFF)
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
    """An attempt delivered. The result is unverified until somebody checks it."""

    kind: ClassVar = Kind.HANDOFF_COMPLETED


class HandoffFailed(_CloseOut, frozen=True, kw_only=True):
    """An attempt ended without delivering, or a policy refused the offer (attempt 0).

    The error code says which error it was; the content has the details. A refusal is in the stream of the run that
    wanted to hand off.
    """

    kind: ClassVar = Kind.HANDOFF_FAILED
    error: str | None = None
    to: AgentId | None = None  # of a refused offer: the agent that should have got the work

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
        """Return whether a policy refused the offer, so that nothing ever ran."""
        return self.attempt == 0


class HandoffContextSanitized(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The relay scanned the sender's text: its findings, and its act."""

    kind: ClassVar = Kind.HANDOFF_CONTEXT_SANITIZED
    handoff: HandoffId
    run: RunId  # the parent, or the attempt that reported
    action: Sanitising
    label: SourceType  # the origin that these words are given
    scanned: int  # number of texts
    found: tuple[ScanFound, ...] = ()
    context: ContentId | None = None  # the item that has the free text

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
