"""The bodies of receipts about tool calls."""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, FieldCheck, Ordinal, each_by
from batonpass.model.base.checks import (
    Form,
    require_digest,
)
from batonpass.model.base.ids import (
    CONTENT,
    CallId,
    ContentId,
    Digest,
    ReceiptId,
    RunId,
    require_agent,
    require_id,
)
from batonpass.model.base.kinds import Gate, Kind
from batonpass.model.base.label import Label, Source
from batonpass.model.bodies.effect import Effect
from batonpass.model.grants.charge import Charges

ToolName: TypeAlias = Annotated[str, FieldCheck(require_agent)]
CommitId: TypeAlias = Annotated[str, Form(r"[0-9a-f]{40}([0-9a-f]{24})?", "a commit as git names it, in full")]


class Changed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that a call changed: its digests before and after. Path and lines are content."""

    change: ContentId  # the content with path and lines
    before: Digest | None = None  # None: it did not exist, or nobody looked
    after: Digest | None = None  # None: it is gone, or nobody looked

    def __post_init__(self) -> None:
        require_id("changes.change", self.change, CONTENT)
        if self.before is not None:
            require_digest("changes.before", self.before)
        if self.after is not None:
            require_digest("changes.after", self.after)


_CHANGES: Final = FieldCheck(each_by(Changed, attrgetter("change")))
_EFFECTS: Final = FieldCheck(each_by(Effect, attrgetter("effect")))


class ToolRequested(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A run is about to call a tool. This is durable before the call is made."""

    kind: ClassVar = Kind.TOOL_REQUESTED
    run: RunId
    call: CallId
    tool: ToolName
    key: Digest | None = None  # of tool, arguments and number among equal calls, keyed with the tree's secret
    target: Digest | None = None  # of the thing it changes, keyed likewise; None if it names none
    idempotent: bool = False  # declared: made twice with the same key, it has one effect
    reversible: bool = False
    reads: bool = False  # declared to change nothing
    flags: tuple[Code, ...] = ()  # such as `would_deny.RULE`: it would have stopped it if it were enforced
    tiers: tuple[Code, ...] = ()  # how much harm it can do, as its tool declares
    credential: Digest | None = None  # of the secret that it uses, keyed with the tree's secret
    charges: Charges = ()  # to the limits that apply, counted before the call
    label: Label | None = None  # of everything that its run knew then
    untrusted: tuple[Source, ...] = ()  # sources whose words are in its arguments


class ToolCompleted(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A call returned."""

    kind: ClassVar = Kind.TOOL_COMPLETED
    run: RunId
    call: CallId
    cost: int = 0  # in millionths of the unit that its budget counts
    flags: tuple[Code, ...] = ()  # problems of its result
    changes: Annotated[tuple[Changed, ...], _CHANGES] = ()  # the files that it changed
    cache: Digest | None = None  # of tool and arguments, keyed with the session's secret: finds the result again
    fresh_until: datetime | None = None  # the call is made again from then on
    charges: Charges = ()  # known only now, less the amount that was set aside
    label: Label | None = None  # of its result
    took_us: int | None = None  # microseconds, by a monotonic clock
    exit_code: int | None = None  # of a command; 128 plus the signal if a signal ended it
    effects: Annotated[tuple[Effect, ...], _EFFECTS] = ()  # other effects, as its tool reports them
    taint: tuple[Source, ...] | None = None  # sources that had reached its run when it wrote files; None: not said
    commits: tuple[CommitId, ...] = ()  # made by it, or brought into the work tree's history; names as in git

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.cache is None) != (self.fresh_until is None):
            raise InvalidValueError("cache", "comes with fresh_until: nothing is kept for good")


class ToolFailed(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A call failed. The error code says which error it was; the content has the details."""

    kind: ClassVar = Kind.TOOL_FAILED
    run: RunId
    call: CallId
    error: Code
    changes: Annotated[tuple[Changed, ...], _CHANGES] = ()  # the files that it changed before it failed
    label: Label | None = None  # of its error message
    flags: tuple[Code, ...] = ()  # problems of its changes
    took_us: int | None = None
    exit_code: int | None = None
    effects: Annotated[tuple[Effect, ...], _EFFECTS] = ()
    taint: tuple[Source, ...] | None = None
    commits: tuple[CommitId, ...] = ()


class ToolDenied(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A rule denied a call before it was made."""

    kind: ClassVar = Kind.TOOL_DENIED
    run: RunId
    call: CallId
    tool: ToolName
    rule: Code


class ToolCached(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A call was not made: an earlier result in this session was fresh enough."""

    kind: ClassVar = Kind.TOOL_CACHED
    run: RunId
    call: CallId
    tool: ToolName
    made: CallId  # the call that had that result
    result: ReceiptId  # the receipt that has the result
    key: Digest | None = None  # as in a request
    flags: tuple[Code, ...] = ()  # as in a request


class ToolHeld(CheckedValue, frozen=True, kw_only=True, omit_defaults=True):
    """A call is held until somebody approves it. It was not made. Its attempt ends here, unless `stays`."""

    kind: ClassVar = Kind.TOOL_HELD
    run: RunId
    call: CallId
    tool: ToolName
    rule: Code
    gate: Gate
    key: Digest  # an approval is for exactly this call: tool, arguments and number among equal calls
    reads: bool = False
    tiers: tuple[Code, ...] = ()
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: Ordinal = 1  # how many people must approve; if more than one, none of them asked for it
    target: Digest | None = None  # as in a request; if the call names no target, of the whole call
    until: datetime | None = None  # of a run that goes on: denied then, if nobody has approved
    stays: bool = False  # the attempt goes on while the call is held, so its handoff is not held
    label: Label | None = None  # of everything that its run knew then
    untrusted: tuple[Source, ...] = ()  # sources whose words are in its arguments
    standing: Digest | None = None  # of the file that it would replace as a whole; an approval is for that file


UNASKED: Final = "made.unasked"  # no check was asked for before
REFUSED: Final = "made.refused"  # it was denied or held, and made anyway
OTHERWISE: Final = "made.otherwise"  # it was made with other arguments than were checked
BACKGROUND: Final = "made.background"  # the rest of a command that had already returned
HOW: Final = (UNASKED, REFUSED, OTHERWISE, BACKGROUND)


def is_told_outside(flags: Iterable[str], rules: Iterable[str]) -> bool:
    """Return whether a request says that it was already made, although one of these rules denied it.

    Such a receipt claims no authority. A door that could not stop a call records it as it was.
    """
    told = set(flags)
    return not told.isdisjoint(HOW) and any(f"would_deny.{rule}" in told for rule in rules)
