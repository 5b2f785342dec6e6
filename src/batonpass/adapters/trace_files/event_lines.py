"""Lines of events, in the format of docs/spec/events.md: for logs of agents that no other reader knows."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.session_files.json_lines import EPOCH, read_time
from batonpass.adapters.session_files.patches import changed_file, edited_file, read_unified
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    LinkedBy,
    Prompt,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentEnded,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.trace_files.item_spool import ItemSpool
from batonpass.adapters.trace_files.json_items import JsonItem
from batonpass.adapters.trace_files.trace_reader import SpooledSource, TallyOfUnknown


class _Event(Struct, kw_only=True, tag_field="type"):
    session: str
    at: str
    id: str | None = None

    @property
    def when(self) -> datetime:
        """Return its time."""
        return read_time(self.at) or EPOCH

    @property
    def uuid(self) -> str:
        """Return its id, which was given one if it had none."""
        return self.id or ""


class SessionLine(_Event, kw_only=True, tag="session"):
    """The facts about a session as a whole."""

    agent: str | None = None
    version: str | None = None
    model: str | None = None


class PromptLine(_Event, kw_only=True, tag="prompt"):
    """Words of a person."""

    text: str


class HandoffLine(_Event, kw_only=True, tag="handoff"):
    """A run hands a task to an agent, whose run has a name from then on."""

    to: str
    task: str
    agent: str | None = None
    run: str | None = None
    call: str | None = None


class TaskLine(_Event, kw_only=True, tag="task"):
    """Further words to a run."""

    run: str
    text: str


class SaidLine(_Event, kw_only=True, tag="said"):
    """Words of a model; the last of a run are its report."""

    text: str
    run: str | None = None


class CallLine(_Event, kw_only=True, tag="call"):
    """A model calls a tool."""

    call: str
    tool: str
    arguments: dict[str, Any] = {}
    run: str | None = None
    reads: bool = False
    target: str | None = None
    command: str | None = None


class ChangedFile(Struct, kw_only=True):
    """A file that a call changed: its whole text before and after, or a diff. It was new if the text before is null."""

    path: str
    before: str | msgspec.UnsetType | None = msgspec.UNSET
    after: str | None = None
    diff: str | None = None


class ResultLine(_Event, kw_only=True, tag="result"):
    """The outcome of a call."""

    call: str
    ok: bool = True
    text: str = ""
    run: str | None = None
    changes: list[ChangedFile] = []


class EndLine(_Event, kw_only=True, tag="end"):
    """A run has ended."""

    run: str | None = None
    status: str = "completed"


EVENTS: Final[tuple[type[_Event], ...]] = (
    *(SessionLine, PromptLine, HandoffLine, TaskLine, SaidLine, CallLine, ResultLine, EndLine),
)
_NAMES: Final = {str(one.__struct_config__.tag): frozenset(one.__struct_fields__) | {"type"} for one in EVENTS}
_KEYS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_TYPE: Final = msgspec.json.Decoder(str).decode
_DECODE: Final = msgspec.json.Decoder(reduce(or_, EVENTS)).decode


class EventLines(SpooledSource):
    """Files of events."""

    program: ClassVar[str] = "jsonl"
    title: ClassVar[str] = "lines of events"
    source: ClassVar[str] = "files of events, a JSON object on each line"

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__(sources)
        self._unknown = TallyOfUnknown()

    def take(self, spool: ItemSpool, path: Path, item: JsonItem) -> None:
        """Take in an event."""
        told = _KEYS(item.data)
        kind = _TYPE(told["type"]) if "type" in told else None
        names = _NAMES.get(kind or "")
        if names is None:
            self._unknown.add(
                "has no type" if kind is None else f"has the type {kind!r}, which is not known", item.line
            )
            return
        event = _DECODE(item.data)
        if read_time(event.at) is None:
            self.skip(path, item.line, f"has no time: {event.at[:40]!r}")
            return
        for name in told.keys() - names:
            self._unknown.add(f"has a field {name!r}, which {kind} does not have", item.line)
        event.id = event.id or sha256(item.data.strip()).hexdigest()[:24]
        if not spool.add(event.session, event.id, event.when, msgspec.json.encode(event)):
            self.skip(path, item.line, f"has the id {event.id!r} of another event")

    def read_all(self, path: Path) -> None:
        """Say which fields and types the format does not have."""
        for what, line, times in self._unknown.tell():
            self.skip(path, line, what if times == 1 else f"{what} ({times:,} times)", times=times)
        self._unknown = TallyOfUnknown()

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        info = SessionInfo(id=files.session)
        for _, body in self.spool.items(files.session):
            event = _DECODE(body)
            if isinstance(event, SessionLine):
                info = replace(
                    info,
                    agent=event.agent or info.agent,
                    version=event.version or info.version,
                    model=event.model or info.model,
                )
            else:
                yield from _records(event, project)
        yield info


def _records(event: _Event, project: Path) -> Iterator[Record]:
    at, uuid = event.when, event.uuid
    match event:
        case PromptLine(text=text):
            yield Prompt(at=at, text=text, uuid=uuid)
        case HandoffLine():
            yield from _handed(event)
        case TaskLine(run=run, text=text):
            yield Task(agent=run, at=at, text=text, uuid=uuid)
        case SaidLine(run=run, text=text):
            yield SaidInWords(agent=run, at=at, text=text, uuid=uuid)
        case CallLine():
            yield ToolUse(
                agent=event.run,
                tool=event.tool,
                input=event.arguments,
                tool_use_id=event.call,
                at=at,
                uuid=uuid,
                cwd=str(project),
                command=event.command,
                target=event.target,
                reads=event.reads,
            )
        case ResultLine():
            yield ToolResult(
                agent=event.run,
                tool_use_id=event.call,
                ok=event.ok,
                at=at,
                uuid=uuid,
                text=event.text,
                patches=tuple(patch for one in event.changes for patch in _patches(one)) if event.ok else (),
            )
        case EndLine(run=run, status=status):
            yield SubagentEnded(agent=run, tool_use_id=None, status=status, at=at)


def _handed(event: HandoffLine) -> Iterator[Record]:
    call = event.call or event.uuid
    yield ToolUse(
        agent=event.run,
        tool="handoff",
        input={"to": event.to},
        tool_use_id=call,
        at=event.when,
        uuid=event.uuid,
        delegates=True,
        task=event.task,
    )
    yield SubagentLink(agent=event.to, tool_use_id=call, how=LinkedBy.META, agent_type=event.agent or event.to)
    yield Task(agent=event.to, at=event.when, text=event.task, uuid=f"{event.uuid}/task")


def _patches(change: ChangedFile) -> Iterator[FilePatch]:
    if change.diff is not None:
        yield from edited_file(change.path, read_unified(change.diff))
    elif change.after is not None and isinstance(change.before, str | None):
        yield changed_file(change.path, change.before, change.after, written=True)
    elif change.after is not None:
        yield FilePatch(path=change.path, after=change.after, written=True)
