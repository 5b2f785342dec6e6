"""A session as a tree: what the human said, what the main conversation did, and what each sub-agent did for it."""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from batonpass.adapters.claude_code.transcripts.earlier_texts import Recall
from batonpass.adapters.claude_code.transcripts.moved_files import Moved, find_moved
from batonpass.adapters.claude_code.transcripts.patches import added
from batonpass.adapters.claude_code.transcripts.transcript import DELEGATES, read_session
from batonpass.adapters.claude_code.transcripts.transcript_places import Transcript, relative_path
from batonpass.adapters.claude_code.transcripts.transcript_values import (
    FilePatch,
    LinkedBy,
    PatchHunk,
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

# Deeper than anybody delegates: what claims to be is put beside the tree instead of below it.
_DEEPEST: Final = 50
_PROBLEMS_KEPT: Final = 100
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

_SUREST: Final = {LinkedBy.META: 0, LinkedBy.RESULT: 1, LinkedBy.INFERRED: 2}


class TranscriptFileChange(Struct, frozen=True, kw_only=True):
    """What a call did to one file; `path` is relative to the project if it lies there."""

    path: str
    created: bool
    before: str | None  # None: it was not there, or is not known
    after: str | None  # None: not known
    hunks: tuple[PatchHunk, ...]
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


class TranscriptCall(Struct, kw_only=True, eq=False):
    """One tool call, what came of it, and whom it started."""

    use: ToolUse
    prompt: Prompt | None  # what the human had said last when it was made; of a sub-agent, when that was started
    result: ToolResult | None = None  # None: it has none yet, or never got one
    changes: tuple[TranscriptFileChange, ...] = ()
    children: list["TranscriptRun"] = field(default_factory=list)

    @property
    def task(self) -> str | None:
        """Return what a sub-agent is told by this call, word for word; None if it starts none."""
        prompt = self.use.input.get("prompt") if self.use.tool in DELEGATES else None
        return prompt if isinstance(prompt, str) else None


Step: TypeAlias = Prompt | Task | TranscriptCall


class TranscriptRun(Struct, kw_only=True, eq=False):
    """The main conversation, or a sub-agent: what it was told and what it did, in order."""

    agent: str | None = None  # None for the main conversation
    agent_type: str | None = None
    parent: TranscriptCall | None = None  # None for the main conversation, and where nobody knows
    link: LinkedBy | None = None  # how that is known
    steps: list[Step] = field(default_factory=list)
    report: SaidInWords | None = None  # the last thing it said
    status: str | None = None  # how it ended, if the program said so

    @property
    def calls(self) -> tuple[TranscriptCall, ...]:
        """Return its calls, in order."""
        return tuple(step for step in self.steps if isinstance(step, TranscriptCall))

    @property
    def task(self) -> str | None:
        """Return what it was told first, as it reached it; else as the call that started it says."""
        first = next((step.text for step in self.steps if isinstance(step, Task)), None)
        return first if first is not None or self.parent is None else self.parent.task

    @property
    def children(self) -> tuple["TranscriptRun", ...]:
        """Return the sub-agents that it started, in order."""
        return tuple(child for call in self.calls for child in call.children)


class Conversation(Struct, frozen=True, kw_only=True):
    """One session: the main run and all below it; sub-agents that nobody is known to have started stand apart."""

    info: SessionInfo
    main: TranscriptRun
    strays: tuple[TranscriptRun, ...]
    uuids: frozenset[str]
    copied: str | None  # the first line that was left out, because another session wrote it
    problems: tuple[SkippedLine, ...]  # the first of them
    unread: int  # how many lines could not be read

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Return what the human said, in order."""
        return tuple(step for step in self.main.steps if isinstance(step, Prompt))

    @property
    def runs(self) -> tuple[TranscriptRun, ...]:
        """Return every run, parents before their children."""
        return tuple(_below([self.main, *self.strays]))


def read_conversation(transcript: Transcript, project: Path, *, without: Container[str] = ()) -> Conversation:
    """Return a session as a tree.

    Lines `without` are left out: a session that was forked begins with copies of another's lines, under their ids.
    """
    building = _Building(project=project, info=_nothing(transcript))
    problems: list[SkippedLine] = []
    unread = 0
    copied: str | None = None
    for record in read_session(transcript):
        if isinstance(record, SkippedLine):
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
    main: TranscriptRun = field(default_factory=TranscriptRun)
    agents: dict[str, TranscriptRun] = field(default_factory=dict)
    open: dict[tuple[str | None, str], TranscriptCall] = field(
        default_factory=dict
    )  # calls without a result, by writer and id
    calls: dict[str, TranscriptCall] = field(default_factory=dict)  # calls that start sub-agents, by id
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
            case SaidInWords():
                self._run(record.agent).report = record
            case ToolUse():
                self._take_use(record)
            case ToolResult():
                self._take_result(record)
            case SubagentLink():
                self._take_link(record)
            case SubagentEnded():
                self._run(record.agent).status = record.status
            case SessionInfo():
                self.info = record
        if uuid := getattr(record, "uuid", ""):
            self.uuids.add(uuid)

    def link(self) -> tuple[TranscriptRun, ...]:
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
            run = TranscriptRun(agent=agent, parent=call, link=LinkedBy.RESULT)
            if call.use.tool_use_id not in launched:
                run.report = SaidInWords(
                    session=result.session, agent=agent, at=result.at, text=result.text, uuid=result.uuid
                )
            call.children.append(run)
            self.agents[agent] = run

    def _run(self, agent: str | None) -> TranscriptRun:
        if agent is None:
            return self.main
        return self.agents.setdefault(agent, TranscriptRun(agent=agent))

    def _take_use(self, use: ToolUse) -> None:
        call = TranscriptCall(use=use, prompt=self.said if use.agent is None else None)
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

    def _moved(self, recall: Recall, moves: Iterable[Moved]) -> Iterator[TranscriptFileChange]:
        """Yield what a command did that moved files, or copied those whose text its run knows."""
        for moved in moves:
            text = recall.follow(moved.source, moved.path, copied=moved.copied)
            path = relative_path(moved.path, self.project)
            if not moved.copied:
                source = relative_path(moved.source, self.project)
                yield TranscriptFileChange(
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

    def _infer(self, run: TranscriptRun) -> TranscriptCall | None:
        """Return the first call that tells a sub-agent exactly this and has started nobody."""
        task = run.task
        fitting = (call for call in self.calls.values() if call.task == task and not call.children)
        return None if task is None else min(fitting, key=lambda call: call.use.at, default=None)

    def _hang(self, run: TranscriptRun, call: TranscriptCall | None, how: LinkedBy) -> None:
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


def _first_words(run: TranscriptRun) -> tuple[datetime, str]:
    first = next(iter(run.steps), None)
    at = _NEVER if first is None else first.use.at if isinstance(first, TranscriptCall) else first.at
    return at, run.agent or ""


def change_from(patch: FilePatch, project: Path, *, told: bool, written: bool) -> TranscriptFileChange:
    """Return what a patch does to a file of a project."""
    return TranscriptFileChange(
        path=relative_path(patch.path, project),
        created=patch.created,
        before=patch.before,
        after=patch.after,
        hunks=patch.hunks,
        told=told,
        written=written,
    )


def _tell_prompt(run: TranscriptRun) -> None:
    """Let the calls of sub-agents know under which of the human's words they were made."""
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
