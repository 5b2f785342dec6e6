"""The bodies of receipts about tool calls."""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    Form,
    require_code,
    require_codes,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    RECEIPT,
    RUN,
    CallId,
    ContentId,
    Digest,
    ReceiptId,
    RunId,
    require_agent,
    require_id,
)
from batonpass.model.base.kinds import Gate, Kind
from batonpass.model.base.label import Label, Source, require_label, require_sources
from batonpass.model.bodies.effect import Effect, require_effects
from batonpass.model.grants.charge import Charge, require_charges

_COMMIT: Final = Form(r"[0-9a-f]{40}([0-9a-f]{24})?", "a commit as git names it, in full")


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


class ToolRequested(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run is about to call a tool. This is durable before the call is made."""

    kind: ClassVar = Kind.TOOL_REQUESTED
    run: RunId
    call: CallId
    tool: str
    key: Digest | None = None  # of tool, arguments and number among equal calls, keyed with the tree's secret
    target: Digest | None = None  # of the thing it changes, keyed likewise; None if it names none
    idempotent: bool = False  # declared: made twice with the same key, it has one effect
    reversible: bool = False
    reads: bool = False  # declared to change nothing
    flags: tuple[str, ...] = ()  # such as `would_deny.RULE`: it would have stopped it if it were enforced
    tiers: tuple[str, ...] = ()  # how much harm it can do, as its tool declares
    credential: Digest | None = None  # of the secret that it uses, keyed with the tree's secret
    charges: tuple[Charge, ...] = ()  # to the limits that apply, counted before the call
    label: Label | None = None  # of everything that its run knew then
    untrusted: tuple[Source, ...] = ()  # sources whose words are in its arguments

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_agent("tool", self.tool)
        if self.key is not None:
            require_digest("key", self.key)
        if self.target is not None:
            require_digest("target", self.target)
        require_instance("idempotent", self.idempotent, bool)
        require_instance("reversible", self.reversible, bool)
        require_instance("reads", self.reads, bool)
        require_codes("flags", self.flags)
        require_codes("tiers", self.tiers)
        if self.credential is not None:
            require_digest("credential", self.credential)
        require_charges(self.charges)
        require_label("label", self.label)
        require_sources("untrusted", self.untrusted)


class ToolCompleted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call returned."""

    kind: ClassVar = Kind.TOOL_COMPLETED
    run: RunId
    call: CallId
    cost: int = 0  # in millionths of the unit that its budget counts
    flags: tuple[str, ...] = ()  # problems of its result
    changes: tuple[Changed, ...] = ()  # the files that it changed
    cache: Digest | None = None  # of tool and arguments, keyed with the session's secret: finds the result again
    fresh_until: datetime | None = None  # the call is made again from then on
    charges: tuple[Charge, ...] = ()  # known only now, less the amount that was set aside
    label: Label | None = None  # of its result
    took_us: int | None = None  # microseconds, by a monotonic clock
    exit_code: int | None = None  # of a command; 128 plus the signal if a signal ended it
    effects: tuple[Effect, ...] = ()  # other effects, as its tool reports them
    taint: tuple[Source, ...] | None = None  # sources that had reached its run when it wrote files; None: not said
    commits: tuple[str, ...] = ()  # made by it, or brought into the work tree's history; names as in git

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        _require_end(self.took_us, self.exit_code, self.effects)
        _require_left(self.taint, self.commits)
        require_integer("cost", self.cost)
        if (self.cache is None) != (self.fresh_until is None):
            raise InvalidValueError("cache", "comes with fresh_until: nothing is kept for good")
        if self.cache is not None and self.fresh_until is not None:
            require_digest("cache", self.cache)
            require_utc("fresh_until", self.fresh_until)
        require_label("label", self.label)
        require_codes("flags", self.flags)
        _require_changes(self.changes)
        require_charges(self.charges)


class ToolFailed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call failed. The error code says which error it was; the content has the details."""

    kind: ClassVar = Kind.TOOL_FAILED
    run: RunId
    call: CallId
    error: str
    changes: tuple[Changed, ...] = ()  # the files that it changed before it failed
    label: Label | None = None  # of its error message
    flags: tuple[str, ...] = ()  # problems of its changes
    took_us: int | None = None
    exit_code: int | None = None
    effects: tuple[Effect, ...] = ()
    taint: tuple[Source, ...] | None = None
    commits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_code("error", self.error)
        require_codes("flags", self.flags)
        _require_end(self.took_us, self.exit_code, self.effects)
        _require_left(self.taint, self.commits)
        _require_changes(self.changes)
        require_label("label", self.label)


class ToolDenied(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule denied a call before it was made."""

    kind: ClassVar = Kind.TOOL_DENIED
    run: RunId
    call: CallId
    tool: str
    rule: str

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_agent("tool", self.tool)
        require_code("rule", self.rule)


class ToolCached(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call was not made: an earlier result in this session was fresh enough."""

    kind: ClassVar = Kind.TOOL_CACHED
    run: RunId
    call: CallId
    tool: str
    made: CallId  # the call that had that result
    result: ReceiptId  # the receipt that has the result
    key: Digest | None = None  # as in a request
    flags: tuple[str, ...] = ()  # as in a request

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_agent("tool", self.tool)
        require_id("made", self.made, CALL)
        require_id("result", self.result, RECEIPT)
        if self.key is not None:
            require_digest("key", self.key)
        require_codes("flags", self.flags)


class ToolHeld(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call is held until somebody approves it. It was not made. Its attempt ends here, unless `stays`."""

    kind: ClassVar = Kind.TOOL_HELD
    run: RunId
    call: CallId
    tool: str
    rule: str
    gate: Gate
    key: Digest  # an approval is for exactly this call: tool, arguments and number among equal calls
    reads: bool = False
    tiers: tuple[str, ...] = ()
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: int = 1  # how many people must approve; if more than one, none of them asked for it
    target: Digest | None = None  # as in a request; if the call names no target, of the whole call
    until: datetime | None = None  # of a run that goes on: denied then, if nobody has approved
    stays: bool = False  # the attempt goes on while the call is held, so its handoff is not held
    label: Label | None = None  # of everything that its run knew then
    untrusted: tuple[Source, ...] = ()  # sources whose words are in its arguments
    standing: Digest | None = None  # of the file that it would replace as a whole; an approval is for that file

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_agent("tool", self.tool)
        require_code("rule", self.rule)
        if self.until is not None:
            require_utc("until", self.until)
        require_instance("proven", self.proven, bool)
        require_integer("approvals", self.approvals, least=1)
        require_instance("stays", self.stays, bool)
        require_member("gate", self.gate, Gate)
        require_digest("key", self.key)
        require_instance("reads", self.reads, bool)
        require_codes("tiers", self.tiers)
        if self.target is not None:
            require_digest("target", self.target)
        if self.standing is not None:
            require_digest("standing", self.standing)
        require_label("label", self.label)
        require_sources("untrusted", self.untrusted)


def _require_end(took_us: int | None, exit_code: int | None, effects: tuple[Effect, ...]) -> None:
    if took_us is not None:
        require_integer("took_us", took_us)
    if exit_code is not None:
        require_integer("exit_code", exit_code)
    require_effects(effects)


def _require_left(taint: tuple[Source, ...] | None, commits: tuple[str, ...]) -> None:
    if taint is not None:
        require_sources("taint", taint)
    if type(commits) is tuple and not commits:
        return
    for commit in require_instance("commits", commits, tuple):
        _COMMIT.require("commits", commit)
    require_unique("commits", commits)


def _require_changes(changes: tuple[Changed, ...]) -> None:
    if type(changes) is tuple and not changes:
        return
    for changed in require_instance("changes", changes, tuple):
        require_instance("changes", changed, Changed)
    require_unique("changes", [changed.change for changed in changes])


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
