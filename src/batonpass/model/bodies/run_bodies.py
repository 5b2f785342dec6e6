"""The bodies of receipts about runs."""

from typing import ClassVar

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, Ordinal
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RunId,
)
from batonpass.model.base.kinds import Carried, ChildHead, Kind, Outcome, Settlement
from batonpass.model.base.label import Label, Source
from batonpass.model.base.trace import TraceParent
from batonpass.model.grants.charge import Charges


class RunStarted(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A root run began, for a principal's intent."""

    kind: ClassVar = Kind.RUN_STARTED
    run: RunId
    agent: AgentId
    principal: PrincipalId
    run_key: PublicKey
    continues: RunId | None = None  # the root whose decisions, questions and verified outputs it inherits
    series: Code | None = None  # the name of its series
    policy: Digest | None = None  # sha256 of the policy file that applies to this run
    label: Label | None = None  # of the content that it starts with; None: no later receipt of it has labels either
    terms: Digest | None = None  # of the grant that begins here; None: the run has no grant
    certificate: Digest | None = None  # binds the run's key to those terms
    trace: TraceParent | None = None  # the caller's trace that the whole tree is a part of
    upstream: int = 0  # agents of other ledgers that worked before it, as its caller said


class RunRekeyed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The run's key was lost with its process. The run continues with a new key, in the next epoch."""

    kind: ClassVar = Kind.RUN_REKEYED
    run: RunId
    run_key: PublicKey


class RunRecorded(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A run recorded items. Later receipts name them by their ids."""

    kind: ClassVar = Kind.RUN_RECORDED
    run: RunId
    by: PrincipalId
    items: tuple[Carried, ...]
    label: Label | None = None  # of the items


class RunRelaxed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody entitled to it lifted a constraint or an exclusion, for a run and everybody below it."""

    kind: ClassVar = Kind.RUN_RELAXED
    run: RunId
    item: ContentId
    by: PrincipalId


class RunSettled(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody settled a call in doubt of a root, which has no handoff whose stream could say so."""

    kind: ClassVar = Kind.RUN_SETTLED
    run: RunId
    by: PrincipalId
    call: CallId
    settlement: Settlement


class RunAcknowledged(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A run countersigned a revision of its baton that was made while it worked: it knows the fallen items."""

    kind: ClassVar = Kind.RUN_ACKNOWLEDGED
    run: RunId
    revision: Ordinal  # revision number of the baton, from 1
    baton: Digest  # the receipt of that revision


class RunTainted(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A source reached a run by another way than its own calls: a result, a memory or a file."""

    kind: ClassVar = Kind.RUN_TAINTED
    run: RunId
    sources: tuple[Source, ...]
    handoff: HandoffId | None = None  # the handoff whose result or words brought it
    wrote: CallId | None = None  # the call that wrote the file which brought it

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sources:
            raise InvalidValueError("sources", "names nothing that came from outside")


class RunEndorsed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody endorsed a source, for a run and everything that comes of it later."""

    kind: ClassVar = Kind.RUN_ENDORSED
    run: RunId
    source: Source
    by: PrincipalId


class RunGap(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """The record has a gap here: calls were made while nothing could be written."""

    kind: ClassVar = Kind.RUN_GAP
    run: RunId
    calls: Ordinal  # how many


class RunSuspended(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A root run was left open, because somebody has to decide before it can go on."""

    kind: ClassVar = Kind.RUN_SUSPENDED
    run: RunId
    call: CallId | None = None  # its call that waits for a ruling
    awaits: HandoffId | None = None  # its handoff that waits, or that leads down to the one that does


class RunSpent(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A run used something that no tool call counts, such as the tokens of its model."""

    kind: ClassVar = Kind.RUN_SPENT
    run: RunId
    tokens: int = 0
    cost: int = 0  # in millionths
    charges: Charges = ()  # to the limits that apply to it


class RunClosed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A root run ended."""

    kind: ClassVar = Kind.RUN_CLOSED
    run: RunId
    outcome: Outcome
    children: tuple[ChildHead, ...] = ()  # the heads of its children's streams
    effects: tuple[CallId, ...] = ()  # the calls that changed something
    unverified: tuple[HandoffId, ...] = ()  # results that it used, and that are neither verified nor waived
    flags: tuple[Code, ...] = ()  # problems of its result
    label: Label | None = None  # of its result
    waiting: tuple[HandoffId, ...] = ()  # its handoffs that somebody still has to approve or answer
    waiting_calls: tuple[CallId, ...] = ()  # its calls that nobody has decided about


class CheckpointSaved(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A run saved the state that its next attempt needs to continue from here."""

    kind: ClassVar = Kind.CHECKPOINT_SAVED
    run: RunId
    after: CallId | None = None  # the last call with an outcome at that time
    label: Label | None = None  # of the saved content
