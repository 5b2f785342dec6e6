"""The bodies about a handoff in the streams of its runs: the offer, the acceptance, the close-out."""

from datetime import datetime
from typing import Annotated, ClassVar, Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, FieldCheck, Ordinal, each_by
from batonpass.model.base.checks import (
    require_integer,
)
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RunId,
    StreamId,
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
)
from batonpass.model.base.label import Label, Source, SourceType
from batonpass.model.base.lifecycle import WAITING, Carrier, State
from batonpass.model.base.trace import TraceParent
from batonpass.model.bodies.reasoning import ReasoningPointer

_FOUND: Final = FieldCheck(each_by(ScanFound, lambda found: f"{found.place} {found.rule}"))


class HandoffInitiated(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
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
    missing: tuple[Code, ...] = ()  # expected parts that the sender left out and did not declare as empty
    unverified: tuple[HandoffId, ...] = ()  # results that it builds on, and that are neither verified nor waived
    fates: tuple[CarriedFate, ...] = ()  # of carried items whose result no longer stands
    replaces: HandoffId | None = None  # an earlier offer of the same task, whose inputs have changed since
    flags: tuple[Code, ...] = ()  # such as `would_hold.RULE`: it would have stopped it if it were enforced
    rule: Code | None = None  # the rule that holds it
    gate: Gate | None = None  # who must approve
    until: datetime | None = None  # denied then, if nobody has approved
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: Ordinal = 1  # how many people must approve; if more than one, none of them asked for it
    label: Label | None = None  # of everything that its sender knew
    taint: tuple[Source, ...] = ()  # sources that had reached the sender, and that nobody endorsed
    terms: Digest | None = None  # of the grant; None: the child has no grant of its own
    reasoning: ReasoningPointer | None = None  # where the sender's last reasoning is; None: unknown
    suspect: tuple[Code, ...] = ()  # fields and items of its sender that look like an injection: quoted, never orders
    trace: TraceParent | None = None  # the caller's trace in which it was offered

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.state not in {State.HELD, WAITING[self.carrier]}:
            raise InvalidValueError("state", f"a {self.carrier}-carried handoff cannot begin {self.state}")
        if (self.scope, self.fingerprint).count(None) != 2 * (self.key is None):
            raise InvalidValueError("key", "a key, its scope and a fingerprint come together")


class HandoffAccepted(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """An agent accepted a handoff. This is the first receipt of the attempt's run."""

    kind: ClassVar = Kind.HANDOFF_ACCEPTED
    handoff: HandoffId
    parent: RunId
    run: RunId
    attempt: Ordinal  # attempt number, from 1
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey
    baton: Digest | None = None  # the receipt of the baton's latest revision, countersigned by this one
    problems: tuple[Code, ...] = ()  # findings of validation that did not stop it
    would_ask: bool = False  # it had a question, and a limit or the mere observation kept it from asking
    policy: Digest | None = None  # sha256 of the policy file that applies to this run
    label: Label | None = None  # of the content that it starts with
    certificate: Digest | None = None  # binds the key of this attempt to the terms of the offer


class _CloseOut(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
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
    flags: tuple[Code, ...] = ()  # problems of the result: a constraint that it breaks, a target that it left untouched
    label: Label | None = None  # of its report
    taint: tuple[Source, ...] = ()  # sources that reached it, and that nobody endorsed
    waiting: tuple[HandoffId, ...] = ()  # its handoffs that somebody still has to approve or answer


class HandoffCompleted(_CloseOut, frozen=True, kw_only=True):
    """An attempt delivered. The result is unverified until somebody checks it."""

    kind: ClassVar = Kind.HANDOFF_COMPLETED

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("attempt", self.attempt, least=1)


class HandoffFailed(_CloseOut, frozen=True, kw_only=True):
    """An attempt ended without delivering, or a policy refused the offer (attempt 0).

    The error code says which error it was; the content has the details. A refusal is in the stream of the run that
    wanted to hand off.
    """

    kind: ClassVar = Kind.HANDOFF_FAILED
    error: Code | None = None
    to: AgentId | None = None  # of a refused offer: the agent that should have got the work

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_refusal and (self.parent != self.run or self.to is None or self.error is None):
            raise InvalidValueError("attempt", "a refused offer names its own run as parent, to whom it was, and why")

    @property
    def is_refusal(self) -> bool:
        """Return whether a policy refused the offer, so that nothing ever ran."""
        return self.attempt == 0


class HandoffContextSanitized(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The relay scanned the words of a sender: the signs that it found, and how it treated the words."""

    kind: ClassVar = Kind.HANDOFF_CONTEXT_SANITIZED
    handoff: HandoffId
    run: RunId  # the parent, or the attempt that reported
    action: Sanitising
    label: SourceType  # the origin that these words are given
    scanned: int  # number of texts
    found: Annotated[tuple[ScanFound, ...], _FOUND] = ()
    context: ContentId | None = None  # the item that has the free text
