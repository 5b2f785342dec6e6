"""A trace as the records of a session: which agent worked for which, and the task, calls and answer of each.

Spans name their parents, and nobody vouches for it: parents may be missing, or go in a circle.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

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
from batonpass.adapters.session_files.told_values import as_arguments
from batonpass.adapters.trace_files.chat_messages import ChatMessage, read_messages, spoken
from batonpass.adapters.trace_files.told_span import SpanKind, ToldSpan

_TASK_NAMES: Final = ("input", "task", "prompt", "message", "request", "description", "query")


class _Place(Struct, frozen=True):
    """Where a span stands: the agent above it, and the tool between both, if there is one."""

    agent: str | None = None
    tool: str | None = None


class _Outline(Struct, frozen=True):
    """The facts about all spans that are needed before the first record."""

    kind: SpanKind
    parent: str | None
    name: str
    trace: str


class SpanTree:
    """Who stands above whom in the spans of one session. Spans are added in the order in which they began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outlines: dict[str, _Outline] = {}
        self._places: dict[str, _Place] = {}
        self._runs: dict[str, str | None] = {}  # the run of each agent's span; None is the main one
        self._links: dict[str, tuple[str, LinkedBy]] = {}  # the call that started a run
        self._calls: set[str] = set()  # the ids of calls that have spans
        self._has_all_calls = True  # each call has a span, and its id
        self._starters: dict[str, str] = {}  # the run that a tool or a transfer started, by its span
        self.problems: list[SkippedLine] = []
        self.agent: str | None = None  # the name of the first one

    def add(self, trace: str, span: ToldSpan) -> None:
        """Take in where a span stands."""
        self._outlines[span.id] = _Outline(span.kind, span.parent, span.name, trace)
        if span.kind is SpanKind.TOOL:
            self._calls.add(span.call or span.id)
            self._has_all_calls &= span.call is not None

    def settle(self) -> None:
        """Find out who started whom, after all spans were added."""
        names: dict[str, str] = {}  # the span of the latest run of each agent
        waiting: list[tuple[str, str]] = []  # transfers that nobody has followed yet: span, and to whom
        for name, span in self._outlines.items():
            if span.kind is SpanKind.TRANSFER:
                waiting.append((name, span.name))
            if span.kind is not SpanKind.AGENT:
                continue
            place = self._place(name)
            if place.tool is not None:
                self._start(name, place.tool, LinkedBy.META)
            elif place.agent is not None:
                self._start(name, f"{name}/start", LinkedBy.META)
            elif (transfer := next((one for one in waiting if one[1] == span.name), None)) is not None:
                waiting.remove(transfer)
                self._start(name, transfer[0], LinkedBy.RESULT)
            elif self.agent is None or span.name in names:
                self._runs[name] = self._runs[names[span.name]] if span.name in names else None
                self.agent = self.agent or span.name
            else:
                self._runs[name] = name
            names[span.name] = name

    def run_of(self, span: ToldSpan) -> str | None:
        """Return the run in which a span happened; None is the main one."""
        above = self._place(span.id).agent
        return None if above is None else self._runs.get(above)

    def started(self, span: ToldSpan) -> tuple[str | None, str | None, LinkedBy]:
        """Return the run of an agent's span, the call that started it, and how that is known."""
        call, how = self._links.get(span.id, (None, LinkedBy.META))
        return self._runs.get(span.id), call, how

    def started_by(self, span: ToldSpan) -> str | None:
        """Return the run that a tool or a transfer started; None if it started none."""
        return self._starters.get(span.id)

    def has_span(self, call: str) -> bool:
        """Return whether a call is told by a span, as far as that is known."""
        return not self._has_all_calls or call in self._calls

    def _start(self, name: str, call: str, how: LinkedBy) -> None:
        self._runs[name] = name
        self._links[name] = (call, how)
        self._starters.setdefault(call, name)

    def _place(self, name: str) -> _Place:
        """Return the place of a span in the tree; spans in a circle are put at the top."""
        way: dict[str, None] = {}
        at: str | None = name
        while at is not None and at in self._outlines and at not in self._places and at not in way:
            way[at] = None
            at = self._outlines[at].parent
        if at is not None and at in way:
            self.problems.append(
                SkippedLine(path=self._path, line=0, what=f"the parents of span {at!r} go in a circle")
            )
            at = None
        for one in reversed(way):
            above = None if at is None else self._outlines.get(at)
            if above is None or at is None:
                self._places[one] = _Place()
            elif above.kind is SpanKind.AGENT:
                self._places[one] = _Place(at)
            elif above.kind is SpanKind.TOOL:
                self._places[one] = _Place(self._places[at].agent, at)
            else:
                self._places[one] = self._places[at]
            at = one
        return self._places.get(name, _Place())


class SpanRecords(Struct, kw_only=True):
    """Tells the spans of one session, in the order in which they began."""

    tree: SpanTree
    info: SessionInfo
    heard: Counter[tuple[str | None, str]] = field(default_factory=Counter)  # words of users, by run and trace
    first: dict[str | None, str] = field(default_factory=dict)  # the first words to each run
    total: Counter[str | None] = field(default_factory=Counter)  # words of users by run
    open: dict[str, tuple[str | None, ToolUse]] = field(default_factory=dict)  # calls that only messages tell
    said: str | None = None  # the last words of a person

    def tell(self, trace: str, span: ToldSpan) -> Iterator[Record]:
        """Yield the records of one span."""
        run = self.tree.run_of(span)
        self.info = replace(self.info, model=span.model or self.info.model, version=span.version or self.info.version)
        match span.kind:
            case SpanKind.AGENT:
                yield from self._agent(trace, span, run)
            case SpanKind.TOOL | SpanKind.TRANSFER:
                yield from self._tool(span, run)
            case SpanKind.MODEL:
                yield from self._model(trace, span, run)

    def _agent(self, trace: str, span: ToldSpan, above: str | None) -> Iterator[Record]:
        run, call, how = self.tree.started(span)
        users = [one for one in read_messages(span.given) if one.is_of_user]
        if call is not None and call == f"{span.id}/start":  # an agent started it, without a tool
            yield ToolUse(
                agent=above,
                tool="invoke_agent",
                input={"agent": span.name},
                tool_use_id=call,
                at=span.began,
                uuid=call,
                delegates=True,
                task=users[-1].text if users else None,
            )
            yield self._result(span, above, call)
        if run is not None and call is not None:
            yield SubagentLink(agent=run, tool_use_id=call, how=how, agent_type=span.name)
        yield from self._heard(trace, span, run, users)
        if span.ended is not None:
            status = "completed" if span.failed is None else "failed"
            yield SubagentEnded(agent=run, tool_use_id=call, status=status, at=span.ended)
        if span.result is not None and span.result.strip():
            yield SaidInWords(agent=run, at=span.ended or span.began, text=span.result, uuid=f"{span.id}/result")

    def _tool(self, span: ToldSpan, run: str | None) -> Iterator[Record]:
        call = span.id
        child, is_transfer = self.tree.started_by(span), span.kind is SpanKind.TRANSFER
        arguments = as_arguments({} if span.given is None else span.given)
        task = self.said if is_transfer else task_of(arguments)
        yield ToolUse(
            agent=run,
            tool=f"transfer_to_{span.name}" if is_transfer else span.name,
            input=arguments,
            tool_use_id=call,
            at=span.began,
            uuid=span.id,
            delegates=child is not None,
            task=None if child is None else task,
        )
        if span.ended is not None:
            yield self._result(span, run, call)
        if child is not None and span.result is not None and span.failed is None:
            # What a tool returned of an agent are its last words, unless its model's own are told.
            yield SaidInWords(agent=child, at=span.ended or span.began, text=span.result, uuid=f"{span.id}/words")

    def _result(self, span: ToldSpan, run: str | None, call: str) -> ToolResult:
        ok = span.failed is None
        text = (span.result if ok else span.failed) or ""
        at = span.ended or span.began
        return ToolResult(agent=run, tool_use_id=call, ok=ok, at=at, uuid=f"{span.id}/result", text=text)

    def _model(self, trace: str, span: ToldSpan, run: str | None) -> Iterator[Record]:
        given = read_messages(span.given)
        yield from self._heard(trace, span, run, [one for one in given if one.is_of_user])
        for name, text in (one for message in given for one in message.results):
            if (known := self.open.pop(name, None)) is not None:
                agent, use = known
                yield ToolResult(
                    agent=agent,
                    tool_use_id=use.tool_use_id,
                    ok=True,
                    at=span.began,
                    uuid=f"{use.uuid}/result",
                    text=text,
                )
        answered = read_messages(span.result)
        at = span.ended or span.began
        if words := spoken(answered):
            yield SaidInWords(agent=run, at=at, text=words, uuid=span.id)
        for asked in (one for message in answered for one in message.calls):
            if not self.tree.has_span(asked.id) and asked.id not in self.open:
                use = ToolUse(
                    agent=run,
                    tool=asked.tool,
                    input=asked.arguments,
                    tool_use_id=asked.id,
                    at=at,
                    uuid=f"{span.id}/{asked.id}",
                )
                self.open[asked.id] = (run, use)
                yield use

    def _heard(self, trace: str, span: ToldSpan, run: str | None, users: list[ChatMessage]) -> Iterator[Record]:
        """Yield the words that a model is given and was not given before."""
        if not users:
            return
        key = (run, trace)
        if key not in self.heard:
            # A later trace may begin with all that was said before, or with nothing of it.
            self.heard[key] = self.total[run] if self.first.get(run) == users[0].text else 0
            if run is not None and run not in self.first:
                self.heard[key] = len(users) - 1  # a transferred conversation comes along; its last words are the task
        self.first.setdefault(run, users[0].text)
        new = users[self.heard[key] :]
        for number, one in enumerate(new, self.heard[key]):
            uuid = f"{span.id}/user/{number}"
            if run is None:
                self.said = one.text
                yield Prompt(at=span.began, text=one.text, uuid=uuid)
            else:
                yield Task(agent=run, at=span.began, text=one.text, uuid=uuid)
        self.heard[key] = max(self.heard[key], len(users))
        self.total[run] = max(self.total[run], len(users))


def tell_spans(
    session: str, path: Path, outlines: Iterable[tuple[str, ToldSpan]], spans: Iterable[tuple[str, ToldSpan]]
) -> Iterator[Record | SkippedLine]:
    """Yield the records of a session, and last the session itself. Its spans are read twice: first where they stand."""
    tree = SpanTree(path)
    for trace, span in outlines:
        tree.add(trace, span)
    tree.settle()
    telling = SpanRecords(tree=tree, info=SessionInfo(id=session, agent=tree.agent))
    for trace, span in spans:
        yield from telling.tell(trace, span)
    yield from tree.problems
    yield telling.info


def task_of(arguments: Mapping[str, object]) -> str | None:
    """Return the task in the arguments of a tool that starts an agent: the only text, or the one that is called so."""
    texts = {name: one for name, one in arguments.items() if isinstance(one, str)}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return next((texts[name] for name in _TASK_NAMES if name in texts), None)
