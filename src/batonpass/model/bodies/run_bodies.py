"""The bodies of receipts about runs."""

from typing import ClassVar

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_code,
    require_codes,
    require_digest,
    require_digests,
    require_integer,
    require_member,
)
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    RUN,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RunId,
    require_agent,
    require_id,
    require_ids,
    require_principal,
)
from batonpass.model.base.ids import HANDOFF as HANDOFF_PREFIX
from batonpass.model.base.kinds import Carried, ChildHead, Kind, Outcome, Settlement, require_carried, require_children
from batonpass.model.base.label import Label, Source, require_label, require_source, require_sources
from batonpass.model.base.trace import TraceParent, require_traceparent
from batonpass.model.grants.charge import Charge, require_charges


class RunStarted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A root run began, for a principal's intent."""

    kind: ClassVar = Kind.RUN_STARTED
    run: RunId
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey
    continues: RunId | None = None  # the root whose decisions, questions and verified outputs it inherits
    series: str | None = None  # the name of its series
    policy: Digest | None = None  # sha256 of the policy file that applies to this run
    label: Label | None = None  # of the content that it starts with; None: no later receipt of it has labels either
    terms: Digest | None = None  # of the grant that begins here; None: the run has no grant
    certificate: Digest | None = None  # binds the run's key to those terms
    trace: TraceParent | None = None  # the caller's trace that the whole tree is a part of
    upstream: int = 0  # agents of other ledgers that worked before it, as its caller said

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_agent("agent", self.agent)
        require_principal("principal", self.principal)
        require_digest("run_key", self.run_key)
        require_traceparent("trace", self.trace)
        if self.continues is not None:
            require_id("continues", self.continues, RUN)
        if self.series is not None:
            require_code("series", self.series)
        if self.policy is not None:
            require_digest("policy", self.policy)
        require_label("label", self.label)
        require_digests(terms=self.terms, certificate=self.certificate)
        require_integer("upstream", self.upstream)


class RunRekeyed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run's key was lost with its process. The run continues with a new key, in the next epoch."""

    kind: ClassVar = Kind.RUN_REKEYED
    run: RunId
    run_key: PublicKey

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_digest("run_key", self.run_key)


class RunRecorded(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run recorded items. Later receipts name them by their ids."""

    kind: ClassVar = Kind.RUN_RECORDED
    run: RunId
    by: PrincipalId
    items: tuple[Carried, ...]
    label: Label | None = None  # of the items

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_principal("by", self.by)
        require_carried("items", self.items)
        require_label("label", self.label)


class RunRelaxed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody entitled to it lifted a constraint or an exclusion, for a run and everybody below it."""

    kind: ClassVar = Kind.RUN_RELAXED
    run: RunId
    item: ContentId
    by: PrincipalId

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("item", self.item, CONTENT)
        require_principal("by", self.by)


class RunSettled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody settled a call in doubt of a root, which has no handoff whose stream could say so."""

    kind: ClassVar = Kind.RUN_SETTLED
    run: RunId
    by: PrincipalId
    call: CallId
    settlement: Settlement

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_principal("by", self.by)
        require_id("call", self.call, CALL)
        require_member("settlement", self.settlement, Settlement)


class RunAcknowledged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run countersigned a revision of its baton that was made while it worked: it knows the fallen items."""

    kind: ClassVar = Kind.RUN_ACKNOWLEDGED
    run: RunId
    revision: int  # revision number of the baton, from 1
    baton: Digest  # the receipt of that revision

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_integer("revision", self.revision, least=1)
        require_digest("baton", self.baton)


class RunTainted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source reached a run by another way than its own calls: a result, a memory or a file."""

    kind: ClassVar = Kind.RUN_TAINTED
    run: RunId
    sources: tuple[Source, ...]
    handoff: HandoffId | None = None  # the handoff whose result or words brought it
    wrote: CallId | None = None  # the call that wrote the file which brought it

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_sources("sources", self.sources)
        if not self.sources:
            raise InvalidValueError("sources", "names nothing that came from outside")
        if self.handoff is not None:
            require_id("handoff", self.handoff, HANDOFF_PREFIX)
        if self.wrote is not None:
            require_id("wrote", self.wrote, CALL)


class RunEndorsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody endorsed a source, for a run and everything that comes of it later."""

    kind: ClassVar = Kind.RUN_ENDORSED
    run: RunId
    source: Source
    by: PrincipalId

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_source("source", self.source)
        require_principal("by", self.by)


class RunGap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record has a gap here: calls were made while nothing could be written."""

    kind: ClassVar = Kind.RUN_GAP
    run: RunId
    calls: int  # how many

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_integer("calls", self.calls, least=1)


class RunSuspended(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A root run was left open, because somebody has to decide before it can go on."""

    kind: ClassVar = Kind.RUN_SUSPENDED
    run: RunId
    call: CallId | None = None  # its call that waits for a ruling
    awaits: HandoffId | None = None  # its handoff that waits, or that leads down to the one that does

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        if self.call is not None:
            require_id("call", self.call, CALL)
        if self.awaits is not None:
            require_id("awaits", self.awaits, HANDOFF_PREFIX)


class RunSpent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run used something that no tool call counts, such as the tokens of its model."""

    kind: ClassVar = Kind.RUN_SPENT
    run: RunId
    tokens: int = 0
    cost: int = 0  # in millionths
    charges: tuple[Charge, ...] = ()  # to the limits that apply to it

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_integer("tokens", self.tokens)
        require_integer("cost", self.cost)
        require_charges(self.charges)


class RunClosed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A root run ended."""

    kind: ClassVar = Kind.RUN_CLOSED
    run: RunId
    outcome: Outcome
    children: tuple[ChildHead, ...] = ()  # the heads of its children's streams
    effects: tuple[CallId, ...] = ()  # the calls that changed something
    unverified: tuple[HandoffId, ...] = ()  # results that it used, and that are neither verified nor waived
    flags: tuple[str, ...] = ()  # problems of its result
    label: Label | None = None  # of its result
    waiting: tuple[HandoffId, ...] = ()  # its handoffs that somebody still has to approve or answer
    waiting_calls: tuple[CallId, ...] = ()  # its calls that nobody has decided about

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_label("label", self.label)
        require_ids("waiting", self.waiting, HANDOFF_PREFIX)
        require_ids("waiting_calls", self.waiting_calls, CALL)
        require_member("outcome", self.outcome, Outcome)
        require_children(self.children)
        require_ids("effects", self.effects, CALL)
        require_ids("unverified", self.unverified, HANDOFF_PREFIX)
        require_codes("flags", self.flags)


class CheckpointSaved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run saved the state that its next attempt needs to continue from here."""

    kind: ClassVar = Kind.CHECKPOINT_SAVED
    run: RunId
    after: CallId | None = None  # the last call with an outcome at that time
    label: Label | None = None  # of the saved content

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_label("label", self.label)
        if self.after is not None:
            require_id("after", self.after, CALL)
