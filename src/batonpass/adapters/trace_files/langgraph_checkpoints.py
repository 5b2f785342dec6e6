"""Conversations that LangGraph's savers keep: messages in checkpoints, of the graph and of the graphs inside of it.

A message belongs to the graph in whose checkpoint it appears first: whatever runs inside of a graph is saved before the
graph itself goes on. A graph that a tool runs has the name of the tool's task in its place, and the writes of that task
name the call.
"""

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, read_time, why_unreadable
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_values import (
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
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text, words_of
from batonpass.adapters.trace_files.chat_messages import text_of
from batonpass.adapters.trace_files.langgraph_tables import CheckpointTables, KeptThread, open_tables, tables_failed
from batonpass.adapters.trace_files.span_tree import task_of
from batonpass.adapters.trace_files.stored_values import StoredObject, UnreadableValueError, decode_stored, plain
from batonpass.adapters.trace_files.trace_reader import NamedSource

_HUMAN: Final = frozenset({"HumanMessage", "HumanMessageChunk"})
_MODEL: Final = frozenset({"AIMessage", "AIMessageChunk"})
_RETURNED: Final = frozenset({"ToolMessage", "ToolMessageChunk"})
_START: Final = "__start__"
_ERROR: Final = "__error__"
_OWN: Final = ("__", "branch:")  # begin the names of channels that are LangGraph's own
_TRANSFERS: Final = ("transfer_to_", "handoff_to_", "transfer_back_to_")


class LangGraphCheckpoints(NamedSource):
    """The conversations in a saver's database."""

    program: ClassVar[str] = "langgraph"
    title: ClassVar[str] = "LangGraph"
    source: ClassVar[str] = "checkpoints of LangGraph: a SQLite saver's file, or the address of a PostgreSQL saver"

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__(sources)
        self._skipped: list[SkippedLine] = []

    @property
    def place(self) -> Path:
        """Return the file, or the server and the database; never a password."""
        return _shown(self.sources[0])

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield all conversations."""
        del project
        for number, threads in enumerate(self._threads):
            for name, one in threads.items():
                extent = {"checkpoints": one.checkpoints, "bytes": one.size, "writes": one.writes, "source": number}
                yield SessionFiles(session=name, main=_shown(self.sources[number]), extent=extent)

    def problems(self) -> tuple[SkippedLine, ...]:
        """Return which databases could not be read."""
        return tuple(self._skipped)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a conversation."""
        del project
        tables = self._tables[(files.extent or {}).get("source", 0)]
        thread = _Thread(tables=tables, name=files.session, path=files.main, info=SessionInfo(id=files.session))
        try:
            yield from thread.records()
        except tables_failed() as error:
            yield SkippedLine(path=files.main, line=0, what=f"cannot be read: {error}")
        yield thread.info

    def ended_at(self, files: SessionFiles) -> datetime:
        """Return the time of the last checkpoint."""
        threads = self._threads[(files.extent or {}).get("source", 0)]
        return _time_in(threads[files.session].last)

    @cached_property
    def _tables(self) -> list[CheckpointTables]:
        return [open_tables(source) for source in self.sources]

    @cached_property
    def _threads(self) -> list[dict[str, KeptThread]]:
        found: list[dict[str, KeptThread]] = []
        for source in self.sources:
            threads: dict[str, KeptThread] = {}
            try:
                threads |= {one.name: one for one in self._tables[len(found)].threads()}
            except tables_failed() as error:
                self._skipped.append(SkippedLine(path=_shown(source), line=0, what=f"cannot be read: {error}"))
            found.append(threads)
        return found


class _Graph(Struct):
    """A graph at one place of a conversation."""

    agent: str | None  # as it was made: the name of the agent, or of the node
    call: str | None = None  # the call whose tool ran it
    run: str | None = None  # the run of all that is said in it; None if the messages decide
    is_told: bool = False


class _Thread(Struct, kw_only=True):
    """A conversation, while it is told."""

    tables: CheckpointTables
    name: str
    path: Path
    info: SessionInfo
    graphs: dict[str, _Graph] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)  # those whose tools ran a graph
    seen: set[str] = field(default_factory=set)  # messages
    uses: dict[str, tuple[str | None, str]] = field(default_factory=dict)  # the run and the name of a call, by its id
    transfers: list[tuple[str, str]] = field(default_factory=list)  # that nobody has followed: to whom, and the call
    runs: dict[tuple[str, str], str] = field(default_factory=dict)  # of agents that share a conversation
    said: str | None = None  # the last words of a person

    def records(self) -> Iterator[Record | SkippedLine]:
        """Yield all records, also of the last writes that are in no checkpoint yet."""
        self._look()
        last: dict[str, tuple[str, datetime]] = {}
        state: dict[str, Any] = {}
        first: Any = None
        at = EPOCH
        for row in self.tables.checkpoints(self.name):
            try:
                moment, values = self.tables.values(self.name, row)
                at = read_time(moment) or at
            except UNREADABLE as error:
                yield self._skipped(f"checkpoint {row.name}", error)
                continue
            last[row.place] = (row.name, at)
            for channel, value in values.items():
                if channel != _START:
                    yield from self._messages(row.place, value, at)
            if not row.place:
                first = values.get(_START) if first is None else first
                state |= {name: one for name, one in values.items() if not name.startswith(_OWN)}
        for place, (checkpoint, moment_of) in last.items():
            yield from self._written(place, checkpoint, moment_of)
        if not self.seen and last:
            yield from self._state(first, state, at)

    def _look(self) -> None:
        """Find out which graphs there are, and which call ran each."""
        for place, metadata, *_ in sorted(self.tables.ask("places", (self.name,)), key=lambda row: str(row[2])):
            told: Mapping[str, Any] = {}
            with contextlib.suppress(*UNREADABLE):
                told = as_mapping(msgspec.json.decode(metadata or b"{}"))
            above, _, own = str(place).rpartition("|")
            node, _, task = own.partition(":")
            graph = _Graph(as_text(told.get("lc_agent_name")) or node or None)
            asked = list(self._asked(above, task)) if task else []
            if len(asked) == 1:
                graph.call, graph.run = asked[0], str(place)
                self.calls.add(asked[0])
            self.graphs[str(place)] = graph

    def _asked(self, place: str, task: str) -> Iterator[str]:
        """Yield the calls whose results a task wrote."""
        for channel, kind, data in self.tables.ask("task", (self.name, place, task)):
            with contextlib.suppress(*UNREADABLE):
                if channel == _ERROR:
                    continue
                for one in _find_messages(decode_stored(kind, data)):
                    call = as_text(one.fields.get("tool_call_id"))
                    if one.name in _RETURNED and call is not None:
                        yield call

    def _written(self, place: str, checkpoint: str, at: datetime) -> Iterator[Record | SkippedLine]:
        for channel, kind, data in self.tables.ask("writes", (self.name, place, checkpoint)):
            try:
                value = decode_stored(kind, data)
            except UNREADABLE as error:
                yield self._skipped(f"what was written to {channel!r}", error)
                continue
            yield from self._messages(place, value, at)
            if channel == _ERROR:
                run = self.graphs[place].run if place in self.graphs else None
                yield SubagentEnded(agent=run, tool_use_id=None, status="failed", at=at)

    def _messages(self, place: str, value: object, at: datetime) -> Iterator[Record]:
        for message in _find_messages(value):
            fields = message.fields
            name = as_text(fields.get("id")) or sha256(text_of(plain(message)).encode()).hexdigest()[:24]
            if name in self.seen:
                continue
            self.seen.add(name)
            if message.name in _HUMAN:
                yield from self._told(place, words_of(plain(fields.get("content"))), at, name)
            elif message.name in _MODEL:
                yield from self._answered(place, fields, at, name)
            elif message.name in _RETURNED:
                yield from self._returned(fields, at, name)

    def _told(self, place: str, text: str, at: datetime, uuid: str) -> Iterator[Record]:
        graph = self.graphs.get(place)
        if not text.strip():
            return
        if graph is None or graph.run is None:
            self.said = text
            yield Prompt(at=at, text=text, uuid=uuid)
            return
        yield from self._begun(graph)
        yield Task(agent=graph.run, at=at, text=text, uuid=uuid)

    def _answered(self, place: str, fields: Mapping[str, Any], at: datetime, uuid: str) -> Iterator[Record]:
        graph = self.graphs.setdefault(place, _Graph(None))
        yield from self._begun(graph)
        agent = as_text(fields.get("name")) or graph.agent
        run = graph.run
        if run is None:
            run = yield from self._sharing(place, agent, at, uuid)
        model = as_mapping(plain(fields.get("response_metadata"))).get("model_name")
        self.info = replace(self.info, model=as_text(model) or self.info.model)
        if (text := words_of(plain(fields.get("content")))).strip():
            yield SaidInWords(agent=run, at=at, text=text, uuid=uuid)
        for call in as_objects(plain(fields.get("tool_calls"))):
            tool, name = as_text(call.get("name")), as_text(call.get("id"))
            if tool is not None and name is not None:
                given = dict(as_mapping(call.get("args")))
                yield self._called(ToolUse(agent=run, tool=tool, input=given, tool_use_id=name, at=at, uuid=uuid))

    def _called(self, use: ToolUse) -> ToolUse:
        """Return a call under a name of its own, with the agent that it starts, if known."""
        unique = f"{use.uuid}/{use.tool_use_id}"
        self.uses[use.tool_use_id] = (use.agent, unique)
        to = next((use.tool.removeprefix(one) for one in _TRANSFERS if use.tool.startswith(one)), None)
        if to is not None:
            self.transfers.append((to, unique))
        starts = use.tool_use_id in self.calls
        task = task_of(use.input) if starts else None
        return replace(use, tool_use_id=unique, delegates=starts or to is not None, task=task)

    def _returned(self, fields: Mapping[str, Any], at: datetime, uuid: str) -> Iterator[Record]:
        known = self.uses.get(as_text(fields.get("tool_call_id")) or "")
        if known is not None:
            run, call = known
            text = words_of(plain(fields.get("content")))
            yield ToolResult(
                agent=run, tool_use_id=call, ok=fields.get("status") != "error", at=at, uuid=uuid, text=text
            )

    def _begun(self, graph: _Graph) -> Iterator[Record]:
        """Yield which call ran a graph, before the first that is told of it."""
        if graph.run is not None and not graph.is_told and graph.call in self.uses:
            graph.is_told = True
            call = self.uses[graph.call][1]
            yield SubagentLink(agent=graph.run, tool_use_id=call, how=LinkedBy.META, agent_type=graph.agent)

    def _sharing(self, place: str, agent: str | None, at: datetime, uuid: str) -> Generator[Record, None, str | None]:
        """Return the run of an agent that shares the conversation; the first agent has the main one."""
        if self.info.agent is None or agent is None or agent == self.info.agent:
            self.info = replace(self.info, agent=self.info.agent or agent)
            return None
        if (run := self.runs.get((place, agent))) is None:
            self.runs[place, agent] = run = f"{place}#{agent}"
            asked = next((one for one in reversed(self.transfers) if one[0] == agent), None)
            if asked is not None:
                self.transfers.remove(asked)
                yield SubagentLink(agent=run, tool_use_id=asked[1], how=LinkedBy.RESULT, agent_type=agent)
            if self.said is not None:
                yield Task(agent=run, at=at, text=self.said, uuid=f"{uuid}/task")
        return run

    def _state(self, first: object, state: Mapping[str, Any], at: datetime) -> Iterator[Record]:
        """Yield the input of a graph without messages, and its final state."""
        if first is not None:
            yield Prompt(at=at, text=text_of(plain(first)), uuid=f"{self.name}/input")
        yield SaidInWords(agent=None, at=at, text=text_of(plain(state)), uuid=f"{self.name}/state")

    def _skipped(self, what: str, error: Exception) -> SkippedLine:
        why = str(error) if isinstance(error, UnreadableValueError) else why_unreadable(error)
        return SkippedLine(path=self.path, line=0, what=f"{what} of {self.name!r} {why}")


def _find_messages(value: object) -> Iterator[StoredObject]:
    """Yield the messages in a value: alone, in a list, or in an object that holds such a list."""
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, StoredObject):
            if one.name in _HUMAN | _MODEL | _RETURNED:
                yield one
            elif isinstance(one.value, dict):
                waiting.append(one.value.get("messages") or one.value.get("update"))
        elif isinstance(one, list):
            waiting += [part for part in one if isinstance(part, StoredObject)]
        elif isinstance(one, dict):
            waiting.append(one.get("messages"))


def _time_in(checkpoint: str) -> datetime:
    """Return the time in the id of a checkpoint, which is a UUID of version 6."""
    digits = checkpoint.replace("-", "")
    try:
        ticks = (int(digits[:12], 16) << 12) | int(digits[13:16], 16)
        return datetime.fromtimestamp((ticks - 0x01B21DD213814000) / 1e7, EPOCH.tzinfo)
    except (ValueError, OverflowError, OSError):
        return EPOCH


def _shown(source: str) -> Path:
    if "://" not in source:
        return Path(source)
    parts = urlsplit(source)
    return Path(f"{parts.hostname or 'localhost'}{parts.path}")
