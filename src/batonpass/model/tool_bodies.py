"""What receipts about tool calls say."""

from dataclasses import dataclass
from typing import ClassVar

from batonpass.model.checks import (
    require_code,
    require_codes,
    require_digest,
    require_instance,
    require_integer,
    require_unique,
)
from batonpass.model.ids import CALL, CONTENT, RUN, CallId, ContentId, Digest, RunId, require_agent, require_id
from batonpass.model.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequested:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    """A call returned."""

    kind: ClassVar = Kind.TOOL_COMPLETED
    run: RunId
    call: CallId
    cost: int = 0  # in millionths of whatever its budget counts
    flags: tuple[str, ...] = ()  # what is wrong with its result
    changes: tuple[Changed, ...] = ()  # the files that it changed

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_integer("cost", self.cost)
        require_codes("flags", self.flags)
        _require_changes(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailed:
    """A call raised; the error code says what, the content says how."""

    kind: ClassVar = Kind.TOOL_FAILED
    run: RunId
    call: CallId
    error: str
    changes: tuple[Changed, ...] = ()  # the files that it changed before it failed

    def __post_init__(self) -> None:
        require_id("run", self.run, RUN)
        require_id("call", self.call, CALL)
        require_code("error", self.error)
        _require_changes(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDenied:
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


def _require_changes(changes: tuple[Changed, ...]) -> None:
    for changed in require_instance("changes", changes, tuple):
        require_instance("changes", changed, Changed)
    require_unique("changes", [changed.change for changed in changes])
