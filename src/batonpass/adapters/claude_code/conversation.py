"""A session as a tree: what the human said, what the main conversation did, and what each sub-agent did for it."""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from batonpass.adapters.claude_code.moved_files import Moved, find_moved
from batonpass.adapters.claude_code.patches import added
from batonpass.adapters.claude_code.places import Transcript, relative_path
from batonpass.adapters.claude_code.recalling import Recall
from batonpass.adapters.claude_code.records import (
    Ended,
    FilePatch,
    Hunk,
    LinkedBy,
    Problem,
    Prompt,
    Record,
    Said,
    SessionInfo,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.claude_code.transcripts import DELEGATES, read_session

# Deeper than anybody delegates: what claims to be is put beside the tree instead of below it.
_DEEPEST: Final = 50
_PROBLEMS_KEPT: Final = 100
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

_SUREST: Final = {LinkedBy.META: 0, LinkedBy.RESULT: 1, LinkedBy.INFERRED: 2}


class FileChange(Struct, frozen=True, kw_only=True):
    """What a call did to one file; `path` is relative to the project if it lies there."""

    path: str
    created: bool
    before: str | None  # None: it was not there, or is not known
    after: str | None  # None: not known
    hunks: tuple[Hunk, ...]
    told: bool  # by the result; else it follows from what the call was asked to do, what it had read, and its success

    written: bool = False  # whole, by a call that says all of its text
    renamed_from: str | None = None

    @property
    def before_digest(self) -> str | None:
        """Return the sha256 of the text before."""
        return None if self.before is None else sha256(self.before.encode()).hexdigest()

    @property
    def after_digest(self) -> str | None:
        """Return the sha256 of the text after."""
        return None if self.after is None else sha256(self.after.encode()).hexdigest()


class Call(Struct, kw_only=True, eq=False):
    """One tool call, what came of it, and whom it started."""

    use: ToolUse
    prompt: Prompt | None  # what the human had said last when it was made; of a sub-agent, when that was started
    result: ToolResult | None = None  # None: it has none yet, or never got one
    changes: tuple[FileChange, ...] = ()
    children: list["Run"] = field(default_factory=list)

    @property
    def task(self) -> str | None:
        """Return what a sub-agent is told by this call, word for word; None if it starts none."""
        prompt = self.use.input.get("prompt") if self.use.tool in DELEGATES else None
        return prompt if isinstance(prompt, str) else None


Step: TypeAlias = Prompt | Task | Call


class Run(Struct, kw_only=True, eq=False):
    """The main conversation, or a sub-agent: what it was told and what it did, in order."""

    agent: str | None = None  # None for the main conversation
    agent_type: str | None = None
    parent: Call | None = None  # None for the main conversation, and where nobody knows
    link: LinkedBy | None = None  # how that is known
    steps: list[Step] = field(default_factory=list)
    report: Said | None = None  # the last thing it said
    status: str | None = None  # how it ended, if the program said so

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return its calls, in order."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def task(self) -> str | None:
        """Return what it was told first, as it reached it; else as the call that started it says."""
        first = next((step.text for step in self.steps if isinstance(step, Task)), None)
        return first if first is not None or self.parent is None else self.parent.task

    @property
    def children(self) -> tuple["Run", ...]:
        """Return the sub-agents that it started, in order."""
        return tuple(child for call in self.calls for child in call.children)


class Conversation(Struct, frozen=True, kw_only=True):
    """One session: the main run and all below it; sub-agents that nobody is known to have started stand apart."""

    info: SessionInfo
    main: Run
    strays: tuple[Run, ...]
    uuids: frozenset[str]
    copied: str | None  # the first line that was left out, because another session wrote it
    problems: tuple[Problem, ...]  # the first of them
    unread: int  # how many lines could not be read

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Return what the human said, in order."""
        return tuple(step for step in self.main.steps if isinstance(step, Prompt))

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return every run, parents before their children."""
        return tuple(_below([self.main, *self.strays]))


def read_conversation(transcript: Transcript, project: Path, *, without: Container[str] = ()) -> Conversation:
    """Return a session as a tree.

    Lines `without` are left out: a session that was forked begins with copies of another's lines, under their ids.
    """
    building = _Building(project=project, info=_nothing(transcript))
    problems: list[Problem] = []
    unread = 0
    copied: str | None = None
    for record in read_session(transcript):
        if isinstance(record, Problem):
            unread += 1
            problems += [record] if unread <= _PROBLEMS_KEPT else []
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


def _nothing(transcript: Transcript) -> SessionInfo:
    return SessionInfo(id=transcript.session, version=None, cwd=None, branch=None, first_at=None, last_at=None)


class _Building(Struct, kw_only=True):
    """A tree that is being put together."""

    project: Path
    info: SessionInfo
    main: Run = field(default_factory=Run)
    agents: dict[str, Run] = field(default_factory=dict)
    open: dict[tuple[str | None, str], Call] = field(default_factory=dict)  # calls without a result, by writer and id
    calls: dict[str, Call] = field(default_factory=dict)  # calls that start sub-agents, by id
    links: dict[str, SubagentLink] = field(default_factory=dict)  # the surest for each sub-agent
    uuids: set[str] = field(default_factory=set)
    recalled: dict[str | None, Recall] = field(default_factory=dict)  # which texts each run knows
    said: Prompt | None = None

    def take(self, record: Record) -> None:
        """Put one record where it belongs."""
        match record:
            case Prompt():
                self.main.steps.append(record)
                self.said = record
            case Task():
                self._run(record.agent).steps.append(record)
            case Said():
                self._run(record.agent).report = record
            case ToolUse():
                self._take_use(record)
            case ToolResult():
                self._take_result(record)
            case SubagentLink():
                self._take_link(record)
            case Ended():
                self._run(record.agent).status = record.status
            case SessionInfo():
                self.info = record
        if uuid := getattr(record, "uuid", ""):
            self.uuids.add(uuid)

    def link(self) -> tuple[Run, ...]:
        """Hang every sub-agent below the call that started it; return those for which there is none."""
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
        """Add the sub-agents of which nothing is left but what they gave back."""
        launched = {link.tool_use_id for link in self.links.values() if link.status == "async_launched"}
        for call in self.calls.values():
            result = call.result
            if call.children or call.task is None or result is None or not result.ok:
                continue
            agent = f"call-{call.use.tool_use_id}"
            run = Run(agent=agent, parent=call, link=LinkedBy.RESULT)
            if call.use.tool_use_id not in launched:
                run.report = Said(session=result.session, agent=agent, at=result.at, text=result.text, uuid=result.uuid)
            call.children.append(run)
            self.agents[agent] = run

    def _run(self, agent: str | None) -> Run:
        if agent is None:
            return self.main
        return self.agents.setdefault(agent, Run(agent=agent))

    def _take_use(self, use: ToolUse) -> None:
        call = Call(use=use, prompt=self.said if use.agent is None else None)
        self._run(use.agent).steps.append(call)
        self.open[use.agent, use.tool_use_id] = call
        if use.tool in DELEGATES:
            self.calls[use.tool_use_id] = call

    def _take_result(self, result: ToolResult) -> None:
        call = self.open.pop((result.agent, result.tool_use_id), None)
        if call is None:
            return
        call.result = result
        recall = self.recalled.setdefault(result.agent, Recall())
        patch = recall.take(call.use, result)
        if patch is not None:
            written = call.use.tool == "Write"
            call.changes = (change_from(patch, self.project, told=result.patch is not None, written=written),)
        else:
            call.changes = tuple(self._moved(recall, find_moved(call.use, result, self.project)))

    def _moved(self, recall: Recall, moves: Iterable[Moved]) -> Iterator[FileChange]:
        """Yield what a command did that moved files, or copied those whose text its run knows."""
        for moved in moves:
            text = recall.follow(moved.source, moved.path, copied=moved.copied)
            path = relative_path(moved.path, self.project)
            if not moved.copied:
                source = relative_path(moved.source, self.project)
                yield FileChange(
                    path=path, created=False, before=None, after=None, hunks=(), told=False, renamed_from=source
                )
            elif text is not None:
                patch = FilePatch(path=moved.path, created=True, before=None, after=text, hunks=(added(text),))
                yield change_from(patch, self.project, told=False, written=True)

    def _take_link(self, link: SubagentLink) -> None:
        known = self.links.get(link.agent, link)
        if _SUREST[link.how] < _SUREST[known.how]:
            known, link = link, known
        # The surest says which call it was; the other may still say what that one leaves out.
        self.links[known.agent] = SubagentLink(
            session=known.session,
            agent=known.agent,
            tool_use_id=known.tool_use_id,
            how=known.how,
            agent_type=known.agent_type or link.agent_type,
            prompt=known.prompt or link.prompt,
            status=known.status or link.status,
        )

    def _infer(self, run: Run) -> Call | None:
        """Return the first call that tells a sub-agent exactly this and has started nobody."""
        task = run.task
        fitting = (call for call in self.calls.values() if call.task == task and not call.children)
        return None if task is None else min(fitting, key=lambda call: call.use.at, default=None)

    def _hang(self, run: Run, call: Call | None, how: LinkedBy) -> None:
        # A damaged or forged link could make a run its own ancestor; then nobody is known to have started it.
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
        """Put beside the tree what hangs deeper in it than anybody delegates."""
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


def _first_words(run: Run) -> tuple[datetime, str]:
    first = next(iter(run.steps), None)
    at = _NEVER if first is None else first.use.at if isinstance(first, Call) else first.at
    return at, run.agent or ""


def change_from(patch: FilePatch, project: Path, *, told: bool, written: bool) -> FileChange:
    """Return what a patch does to a file of a project."""
    return FileChange(
        path=relative_path(patch.path, project),
        created=patch.created,
        before=patch.before,
        after=patch.after,
        hunks=patch.hunks,
        told=told,
        written=written,
    )


def _tell_prompt(run: Run) -> None:
    """Let the calls of sub-agents know under which of the human's words they were made."""
    waiting = [run]
    while waiting:
        for call in waiting.pop().calls:
            for child in call.children:
                for made in child.calls:
                    made.prompt = call.prompt
                waiting.append(child)


def _below(runs: Sequence[Run]) -> Iterator[Run]:
    waiting = [*reversed(runs)]
    while waiting:
        run = waiting.pop()
        yield run
        waiting += reversed(run.children)
