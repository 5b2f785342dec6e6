"""What receipts about tool calls say."""

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
    """A file that a call changed: its digests before and after; the path and the lines are content."""

    change: ContentId
    before: Digest | None = None  # None: it was not there, or nobody looked
    after: Digest | None = None  # None: it is gone, or nobody looked

    def __post_init__(self) -> None:
        require_id("changes.change", self.change, CONTENT)
        if self.before is not None:
            require_digest("changes.before", self.before)
        if self.after is not None:
            require_digest("changes.after", self.after)


class ToolRequested(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run is about to call a tool; durable before the call is made."""

    kind: ClassVar = Kind.TOOL_REQUESTED
    run: RunId
    call: CallId
    tool: str
    key: Digest | None = None  # of tool, arguments and the how-manyth such call it is, keyed with the tree's secret
    target: Digest | None = None  # of what it changes, keyed likewise; None if it changes nothing that it names
    idempotent: bool = False  # declared so: the same key twice has one effect
    reversible: bool = False
    reads: bool = False  # declared to change nothing
    flags: tuple[str, ...] = ()  # what would have stopped it, had the run been held to a grant
    tiers: tuple[str, ...] = ()  # how much depends on it, as its tool declares
    credential: Digest | None = None  # of the secret that it acts with, keyed with the tree's secret
    charges: tuple[Charge, ...] = ()  # what it uses up of the limits that it is under, counted before it is made
    label: Label | None = None  # of all that its run knew then
    untrusted: tuple[Source, ...] = ()  # whose words stand in its arguments, of those that came from outside

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
    cost: int = 0  # in millionths of whatever its budget counts
    flags: tuple[str, ...] = ()  # what is wrong with its result
    changes: tuple[Changed, ...] = ()  # the files that it changed
    cache: Digest | None = None  # of tool and arguments, keyed with the session's secret: what finds the result again
    fresh_until: datetime | None = None  # from then on the call is made again
    charges: tuple[Charge, ...] = ()  # what is known only now, less what was set aside
    label: Label | None = None  # of what it returned
    took_us: int | None = None  # microseconds, by a clock that nobody can set
    exit_code: int | None = None  # of a command; of one that a signal ended, 128 and the signal's number
    effects: tuple[Effect, ...] = ()  # what it changed besides, as its tool says
    taint: tuple[Source, ...] | None = None  # what its run knew from outside when it left those files; None: not said
    commits: tuple[str, ...] = ()  # that it made, or brought into the history of the work tree, as git names them

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
    """A call raised; the error code says what, the content says how."""

    kind: ClassVar = Kind.TOOL_FAILED
    run: RunId
    call: CallId
    error: str
    changes: tuple[Changed, ...] = ()  # the files that it changed before it failed
    label: Label | None = None  # of what it said
    flags: tuple[str, ...] = ()  # what is wrong with what it changed
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
    """A call was refused before it was made, by this rule."""

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
    """A call was not made: the result of an earlier one, in this session, was fresh enough."""

    kind: ClassVar = Kind.TOOL_CACHED
    run: RunId
    call: CallId
    tool: str
    made: CallId  # the call whose result it is
    result: ReceiptId  # the receipt that has that result
    key: Digest | None = None  # of tool, arguments and the how-manyth such call it is, as a request has it
    flags: tuple[str, ...] = ()  # what would have stopped it, had the run been held to a grant

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
    """A call waits for somebody to let it be made; it was not made, and its attempt ends here unless it stays open."""

    kind: ClassVar = Kind.TOOL_HELD
    run: RunId
    call: CallId
    tool: str
    rule: str
    gate: Gate
    key: Digest  # what is let go on is exactly this call: tool, arguments and the how-manyth
    reads: bool = False
    tiers: tuple[str, ...] = ()
    proven: bool = False  # it takes a decision that an approver's key signed
    approvals: int = 1  # so many people have to let it go on, none of whom asked for it if they are several
    target: Digest | None = (
        None  # of what it would change, keyed as in a request; of a call that names none, of all of it
    )
    until: datetime | None = None  # if its run goes on: when it is refused, if nobody has let it be made by then
    stays: bool = False  # of an attempt at a handoff: it goes on while this waits, so the handoff does not wait
    label: Label | None = None  # of all that its run knew then
    untrusted: tuple[Source, ...] = ()  # whose words stand in its arguments, of those that came from outside

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
    for commit in require_instance("commits", commits, tuple):
        _COMMIT.require("commits", commit)
    require_unique("commits", commits)


def _require_changes(changes: tuple[Changed, ...]) -> None:
    for changed in require_instance("changes", changes, tuple):
        require_instance("changes", changed, Changed)
    require_unique("changes", [changed.change for changed in changes])


UNASKED: Final = "made.unasked"  # nobody was asked before
REFUSED: Final = "made.refused"  # it was refused or held, and made all the same
OTHERWISE: Final = "made.otherwise"  # with other arguments than were judged
BACKGROUND: Final = "made.background"  # the rest of a call that had returned
HOW: Final = (UNASKED, REFUSED, OTHERWISE, BACKGROUND)


def is_told_outside(flags: Iterable[str], rules: Iterable[str]) -> bool:
    """Return whether a request says itself that it was made already, and that one of these rules stood against it.

    Such a receipt claims no authority: whoever could not stop a call tells it as it was.
    """
    told = set(flags)
    return not told.isdisjoint(HOW) and any(f"would_deny.{rule}" in told for rule in rules)
