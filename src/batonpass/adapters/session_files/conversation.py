"""A session as a tree: the human's prompts, the calls of the main conversation, and its sub-agents."""

from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.adapters.session_files.moved_files import find_moved
from batonpass.adapters.session_files.session_place import SessionFiles, relative_path
from batonpass.adapters.session_files.session_reader import SessionReader
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
from batonpass.adapters.session_files.texts_aside import AsideText, TextsAside

# No real delegation is deeper; a run that claims to be is put next to the tree.
_DEEPEST: Final = 50
_PROBLEMS_KEPT: Final = 100
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

_SUREST: Final = {LinkedBy.META: 0, LinkedBy.RESULT: 1, LinkedBy.INFERRED: 2}


class TranscriptCall(Struct, kw_only=True, eq=False):
    """A tool call, its outcome, and the sub-agents it started."""

    use: ToolUse
    prompt: Prompt | None  # the human's last prompt before the call; for a sub-agent, before it was started
    result: ToolResult | None = None  # None: there is none (yet)
    aside: AsideText | None = None  # the text of the result, if that is long
    changes: tuple[FilePatch, ...] = ()
    children: list["TranscriptRun"] = field(default_factory=list)

    @property
    def returned(self) -> str:
        """Return the text of its result; an empty one if it has none."""
        if self.aside is not None:
            return self.aside.read().decode()
        return "" if self.result is None else self.result.text

    @property
    def task(self) -> str | None:
        """Return the exact prompt for the sub-agent; None if the call starts none."""
        return self.use.task if self.use.delegates else None


Step: TypeAlias = Prompt | Task | TranscriptCall


class TranscriptRun(Struct, kw_only=True, eq=False):
    """The main conversation or a sub-agent: its instructions and calls, in order."""

    agent: str | None = None  # None for the main conversation
    agent_type: str | None = None
    parent: TranscriptCall | None = None  # None for the main conversation, or if unknown
    link: LinkedBy | None = None  # how the parent is known
    steps: list[Step] = field(default_factory=list)
    report: SaidInWords | None = None  # its last words
    status: str | None = None  # how it ended, according to the program
    ended: datetime | None = None  # when, likewise

    @property
    def calls(self) -> tuple[TranscriptCall, ...]:
        """Return its calls, in order."""
        return tuple(step for step in self.steps if isinstance(step, TranscriptCall))

    @property
    def task(self) -> str | None:
        """Return its first instructions; if they are missing, those in the call that started it."""
        first = next((step.text for step in self.steps if isinstance(step, Task)), None)
        return first if first is not None or self.parent is None else self.parent.task

    @property
    def children(self) -> tuple["TranscriptRun", ...]:
        """Return the sub-agents that it started, in order."""
        return tuple(child for call in self.calls for child in call.children)


class Conversation(Struct, frozen=True, kw_only=True):
    """A session: the main run with everything below it, and sub-agents whose parent is unknown."""

    info: SessionInfo
    main: TranscriptRun
    strays: tuple[TranscriptRun, ...]
    uuids: frozenset[str]
    copied: str | None  # the id of the first line that was left out because another session wrote it
    problems: tuple[SkippedLine, ...]  # the first of them
    unread: int  # how many lines could not be read

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Return the human's prompts, in order."""
        return tuple(step for step in self.main.steps if isinstance(step, Prompt))

    @property
    def runs(self) -> tuple[TranscriptRun, ...]:
        """Return every run, parents before children."""
        return tuple(_below([self.main, *self.strays]))


def read_conversation(
    reader: SessionReader, files: SessionFiles, project: Path, *, without: Container[str] = ()
) -> Conversation:
    """Return a session as a tree.

    Lines with ids in `without` are left out: a forked session begins with copies of another session's lines.
    """
    building = _Building(project=project, info=SessionInfo(id=files.session))
    problems: list[SkippedLine] = []
    unread = 0
    copied: str | None = None
    for record in reader.read(files, project):
        if isinstance(record, SkippedLine):
            unread += record.times
            problems += [record] if len(problems) < _PROBLEMS_KEPT else []
        elif (uuid := getattr(record, "uuid", None)) is not None and uuid in without:
            copied = copied or uuid
        else:
            building.take(record)
    strays = building.link()
    return Conversation(
        info=building.info,
        main=building.main,
        strays=strays,
        uuids=frozenset(building.uuids),
        copied=copied,
        problems=tuple(problems),
        unread=unread,
    )


class _Building(Struct, kw_only=True):
    """A tree under construction."""

    project: Path
    info: SessionInfo
    main: TranscriptRun = field(default_factory=TranscriptRun)
    agents: dict[str, TranscriptRun] = field(default_factory=dict)
    open: dict[tuple[str | None, str], TranscriptCall] = field(
        default_factory=dict
    )  # calls without a result, by agent and id
    calls: dict[str, TranscriptCall] = field(default_factory=dict)  # calls that start sub-agents, by id
    links: dict[str, SubagentLink] = field(default_factory=dict)  # the surest link of each sub-agent
    uuids: set[str] = field(default_factory=set)
    said: Prompt | None = None
    aside: TextsAside = field(default_factory=TextsAside)

    def take(self, record: Record) -> None:
        """Add one record."""
        match record:
            case Prompt():
                self.main.steps.append(record)
                self.said = record
            case Task():
                self._run(record.agent).steps.append(record)
            case SaidInWords():
                self._run(record.agent).report = record
            case ToolUse():
                self._take_use(record)
            case ToolResult():
                self._take_result(record)
            case SubagentLink():
                self._take_link(record)
            case SubagentEnded():
                run = self._run(record.agent)
                run.status, run.ended = record.status, record.at
            case SessionInfo():
                self.info = record
        if uuid := getattr(record, "uuid", ""):
            self.uuids.add(uuid)

    def link(self) -> tuple[TranscriptRun, ...]:
        """Attach every sub-agent to the call that started it; return those without one."""
        agents = sorted(self.agents.values(), key=_first_words)
        for run in agents:
            known = self.links.get(run.agent or "")
            if known is not None:
                run.agent_type = known.agent_type or run.agent_type
                run.status = run.status or known.status
                self._hang(run, self.calls.get(known.tool_use_id), known.how)
        for run in agents:
            if run.parent is None:
                self._hang(run, self._infer(run), LinkedBy.INFERRED)
        self._add_unseen()
        self._cut()
        for run in self.agents.values():
            if run.parent is not None and run.agent_type is None:
                given = run.parent.use.input.get("subagent_type")
                run.agent_type = given if isinstance(given, str) else None
        strays = tuple(run for run in self.agents.values() if run.parent is None and run.steps)
        for run in (self.main, *strays):
            _tell_prompt(run)
        return strays

    def _add_unseen(self) -> None:
        """Add the sub-agents of which only the result is left."""
        launched = {link.tool_use_id for link in self.links.values() if link.status == "async_launched"}
        for call in self.calls.values():
            result = call.result
            if call.children or call.task is None or result is None or not result.ok:
                continue
            agent = f"call-{call.use.tool_use_id}"
            run = TranscriptRun(agent=agent, parent=call, link=LinkedBy.RESULT)
            if call.use.tool_use_id not in launched:
                run.report = SaidInWords(agent=agent, at=result.at, text=call.returned, uuid=result.uuid)
            call.children.append(run)
            self.agents[agent] = run

    def _run(self, agent: str | None) -> TranscriptRun:
        if agent is None:
            return self.main
        return self.agents.setdefault(agent, TranscriptRun(agent=agent))

    def _take_use(self, use: ToolUse) -> None:
        use = replace(use, input=self.aside.arguments(use.input))
        call = TranscriptCall(use=use, prompt=self.said if use.agent is None else None)
        self._run(use.agent).steps.append(call)
        self.open[use.agent, use.tool_use_id] = call
        if use.delegates:
            self.calls[use.tool_use_id] = call

    def _take_result(self, result: ToolResult) -> None:
        call = self.open.pop((result.agent, result.tool_use_id), None)
        if call is None:
            return
        call.aside = self.aside.text(result.text)
        call.result = result if call.aside is None else replace(result, text="", patches=())
        patches = result.patches or tuple(self._moved(call.use, result))
        call.changes = tuple(relative_to(self.project, patch) for patch in patches)

    def _moved(self, use: ToolUse, result: ToolResult) -> Iterator[FilePatch]:
        """Yield the files that a command moved; of a copy the text is not known."""
        if use.command is not None and result.ok:
            for moved in find_moved(use.command, use.cwd, self.project):
                if not moved.copied:
                    yield FilePatch(path=moved.path, renamed_from=moved.source)

    def _take_link(self, link: SubagentLink) -> None:
        known = self.links.get(link.agent, link)
        if _SUREST[link.how] < _SUREST[known.how]:
            known, link = link, known
        # The surest link decides about the call; the other may fill in missing parts.
        self.links[known.agent] = replace(
            known, agent_type=known.agent_type or link.agent_type, status=known.status or link.status
        )

    def _infer(self, run: TranscriptRun) -> TranscriptCall | None:
        """Return the first call with exactly this task that started nobody yet."""
        task = run.task
        fitting = (call for call in self.calls.values() if call.task == task and not call.children)
        return None if task is None else min(fitting, key=lambda call: call.use.at, default=None)

    def _hang(self, run: TranscriptRun, call: TranscriptCall | None, how: LinkedBy) -> None:
        # A damaged or forged link could make a run its own ancestor; then its parent is unknown.
        above = call
        while above is not None:
            starter = self._run(above.use.agent)
            if starter is run:
                return
            above = starter.parent
        if call is not None:
            run.parent, run.link = call, how
            call.children.append(run)

    def _cut(self) -> None:
        """Detach runs that are too deep in the tree."""
        level = [self.main, *(run for run in self.agents.values() if run.parent is None)]
        depth = 0
        while level:
            depth += 1
            below = [child for run in level for child in run.children]
            if depth > _DEEPEST:
                for run in below:
                    if run.parent is not None:
                        run.parent.children.remove(run)
                    run.parent = run.link = None
                depth = 0
            level = below


def _first_words(run: TranscriptRun) -> tuple[datetime, str]:
    first = next(iter(run.steps), None)
    at = _NEVER if first is None else first.use.at if isinstance(first, TranscriptCall) else first.at
    return at, run.agent or ""


def relative_to(project: Path, patch: FilePatch) -> FilePatch:
    """Return a patch with its paths relative to the project."""
    came = None if patch.renamed_from is None else relative_path(patch.renamed_from, project)
    return replace(patch, path=relative_path(patch.path, project), renamed_from=came)


def _tell_prompt(run: TranscriptRun) -> None:
    """Give the calls of sub-agents the human's prompt under which they were made."""
    waiting = [run]
    while waiting:
        for call in waiting.pop().calls:
            for child in call.children:
                for made in child.calls:
                    made.prompt = call.prompt
                waiting.append(child)


def _below(runs: Sequence[TranscriptRun]) -> Iterator[TranscriptRun]:
    waiting = [*reversed(runs)]
    while waiting:
        run = waiting.pop()
        yield run
        waiting += reversed(run.children)
