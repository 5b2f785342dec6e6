"""Turns a session into receipts: a root, a handoff for each sub-agent, a request and an outcome for each call."""

from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct, field

from batonpass.adapters.importer.draft_batches import Batch
from batonpass.adapters.importer.import_sources import (
    RecordedSession,
    describe_source,
    end_key,
    key_of,
    series_of,
    session_id_of,
)
from batonpass.adapters.importer.receipt_words import (
    NOT_THERE,
    as_code,
    changes_of,
    describe_arguments,
    outcome_of,
    target_of,
    within_limit,
)
from batonpass.adapters.session_files.conversation import Conversation, TranscriptCall, TranscriptRun
from batonpass.adapters.session_files.session_values import Prompt, Task
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.reasoning import keep_thought, point_to
from batonpass.handoff.transfer.attempt_receipts import close_out
from batonpass.ledger.draft import Draft
from batonpass.model.base.content_names import ARGUMENTS, MESSAGE, REPORT, RESULT, SOURCE, TARGET, TASK
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    Digest,
    HandoffId,
    PrincipalId,
    RunId,
    StreamId,
    as_agent,
    new_call_id,
    new_handoff_id,
    new_run_id,
)
from batonpass.model.base.kinds import ChildHead
from batonpass.model.base.lifecycle import WAITING, Carrier
from batonpass.model.bodies.body import (
    Body,
    Carried,
    HandoffAccepted,
    HandoffInitiated,
    Outcome,
    Part,
    RunRecorded,
    RunStarted,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Touch
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.receipt import SIGNED_BY_RUN
from batonpass.model.ledger.run import Run, RunState
from batonpass.signing.ed25519 import Ed25519Signer

_FAILED: Final = "failed"


class ImportCounts(Struct, kw_only=True):
    """How much was found, and how much of it is new in the ledger."""

    found: int = 0  # sessions of the project
    sessions: int = 0  # sessions with something new
    prompts: int = 0
    subagents: int = 0
    calls: int = 0
    changes: int = 0
    receipts: int = 0
    unread: int = 0  # lines that could not be read

    def add(self, other: "ImportCounts") -> None:
        """Add other counts to these."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def count_new(conversation: Conversation, recorded: RecordedSession) -> ImportCounts:
    """Return how much of a session is not recorded yet."""
    counts = ImportCounts(sessions=1)
    for run in conversation.runs:
        if run.agent is not None and recorded.is_new_run(run):
            counts.subagents += 1
        for step in filter(recorded.is_new, run.steps):
            counts.prompts += isinstance(step, Prompt)
            if isinstance(step, TranscriptCall) and not step.children:
                counts.calls += 1
                counts.changes += len(step.changes) if step.result is not None and step.result.ok else 0
    return counts


class _Open(Struct, kw_only=True):
    """A run that is being recorded."""

    run: Run
    signer: Signer
    children: list[ChildHead] = field(default_factory=list)
    handoffs: list[HandoffId] = field(default_factory=list)
    effects: list[CallId] = field(default_factory=list)
    identical: Counter[bytes] = field(default_factory=Counter)


class SessionDrafts:
    """Records the new part of one session as one tree."""

    def __init__(
        self,
        desk: Desk,
        batch: Batch,
        conversation: Conversation,
        *,
        program: str,
        by: PrincipalId,
        recorded: RecordedSession | None = None,
        continues: RunId | None = None,
        messages: Callable[[], Mapping[str, ReasoningPlace]] = dict,
    ) -> None:
        self.counts = ImportCounts(sessions=1)
        self._desk = desk
        self._batch = batch
        self._conversation = conversation
        self._by = by
        self._already = recorded or RecordedSession()
        self._continues = continues
        self._program = program
        self._find_messages = messages
        self._messages: Mapping[str, ReasoningPlace] | None = None  # by call; read at the first use
        self._session = session_id_of(program, conversation.info.id)
        self._stated: list[Carried] = []
        self._said_first: Prompt | Task | None = None  # the words in the first receipt

    def record(self, sizes: Mapping[str, int]) -> RunId:
        """Record the session and return its root; `sizes` says how far its files were read."""
        main = self._conversation.main
        opened = self._start(main)
        self._steps(opened, main)
        for stray in self._conversation.strays:
            if self._already.is_new_run(stray):
                self._delegate(opened, None, stray)
        outcome = Outcome.FAILED if main.status == _FAILED else Outcome.COMPLETED
        self._close(opened, outcome, main, sizes=dict(sizes))
        return opened.run.id

    def _start(self, main: TranscriptRun) -> _Open:
        at = self._desk.clock.now()
        run, signer = new_run_id(at), Ed25519Signer.generate()
        # If the new part begins in the middle of a prompt's work, the root repeats that prompt.
        first = next((step for step in main.steps if self._already.is_new(step)), None)
        intent = first.prompt if isinstance(first, TranscriptCall) else first
        secret = self._desk.secrets.new()
        contents = [secret, self._source_of(intent)]
        if intent is not None:
            contents.append(self._desk.text(Part.INTENT, within_limit(intent.text)))
            self._stated.append(_carried(contents[-1]))
            self.counts.prompts += intent is first
        self._desk.secrets.keep(run, secret.body)
        agent = (
            AgentId(self._program) if self._conversation.info.agent is None else as_agent(self._conversation.info.agent)
        )
        body = RunStarted(
            run=run,
            agent=agent,
            principal=self._by,
            run_key=signer.public_key,
            continues=self._continues,
            series=series_of(self._program, self._conversation.info.id),
        )
        opened = _Open(run=self._recorded(run, run, agent), signer=signer)
        with self._desk.store.view() as view:
            genesis = view.info().genesis
        self._add(opened, body, contents, anchor=genesis, new=True)
        self._said_first = intent
        return opened

    def _steps(self, opened: _Open, run: TranscriptRun) -> None:
        tasks = 0
        for step in run.steps:
            if isinstance(step, Task):
                tasks += 1
            if not self._already.is_new(step):
                continue
            if isinstance(step, TranscriptCall):
                self._call(opened, step)
            elif isinstance(step, Prompt):
                self._prompt(opened, step)
            elif tasks > 1:
                self._told(opened, step)

    def _prompt(self, opened: _Open, prompt: Prompt) -> None:
        if prompt is self._said_first:
            return  # it is in the first receipt
        words = self._desk.text(f"{Part.INTENT}.1", within_limit(prompt.text))
        item = _carried(words)
        body = RunRecorded(run=opened.run.id, by=self._by, items=(item,))
        self._add(opened, body, [words, self._source_of(prompt)])
        self._stated.append(item)
        self.counts.prompts += 1

    def _told(self, opened: _Open, task: Task) -> None:
        """Record later instructions to a sub-agent."""
        body = RunRecorded(run=opened.run.id, by=PrincipalId(f"agent:{self._program}"), items=())
        words = self._desk.text("told", within_limit(task.text))
        self._add(opened, body, [words, self._source_of(task)])

    def _call(self, opened: _Open, call: TranscriptCall) -> None:
        for child in call.children:
            if self._already.is_new_run(child):
                self._delegate(opened, call, child)
        if not call.children:
            self._tool(opened, call)
            self.counts.calls += 1

    def _tool(self, opened: _Open, call: TranscriptCall) -> None:
        use, result = call.use, call.result
        run = opened.run.id
        tool = as_agent(use.tool)
        described = describe_arguments(use.tool, dict(use.input))
        arguments = self._desk.json(ARGUMENTS, described)
        identifier = new_call_id(self._desk.clock.now())
        if result is not None and result.denied is not None:
            denied = ToolDenied(run=run, call=identifier, tool=tool, rule=as_code(f"{self._program}.{result.denied}"))
            message = self._desk.text(MESSAGE, within_limit(call.returned))
            self._add(opened, denied, [arguments, message, self._source(key=key_of(result), at=result.at)])
            return
        target = target_of(call)
        requested = ToolRequested(
            run=run,
            call=identifier,
            tool=tool,
            key=self._key(opened, described),
            target=None if target is None else self._digest(b"target", target.encode(), root=opened.run.root),
            reads=use.reads,
        )
        contents = [arguments, self._source(key=key_of(use), at=use.at, model=use.model)]
        if target is not None:
            contents.append(self._desk.text(TARGET, target))
        self._add(opened, requested, contents)
        if not requested.reads:
            opened.effects.append(identifier)
        if result is None:
            return  # no outcome is known
        source = self._source(key=key_of(result), at=result.at, model=use.model)
        if not result.ok:
            failed = ToolFailed(run=run, call=identifier, error=f"{self._program}.failed")
            self._add(opened, failed, [self._desk.text(MESSAGE, within_limit(call.returned)), source])
            return
        changes = list(changes_of(call, self._desk, identifier=identifier, run=run))
        completed = ToolCompleted(run=run, call=identifier, changes=tuple(change.changed for change in changes))
        touches = tuple(change.touch for change in changes)
        contents = [
            self._desk.text(RESULT, within_limit(call.returned)),
            source,
            *(change.content for change in changes),
        ]
        self._add(opened, completed, contents, touches=touches)
        self.counts.changes += len(changes)

    def _delegate(self, parent: _Open, call: TranscriptCall | None, child: TranscriptRun) -> None:
        """Record a sub-agent: the offer with its exact task, its run, and its end."""
        at = self._desk.clock.now()
        handoff, run, signer = new_handoff_id(at), new_run_id(at), Ed25519Signer.generate()
        to = as_agent(child.agent_type or "subagent")
        stated = tuple(self._stated)
        thought = None if call is None else self._thought(call)
        offer = HandoffInitiated(
            handoff=handoff,
            run=parent.run.id,
            to=to,
            carrier=Carrier.CALLER,
            state=WAITING[Carrier.CALLER],
            carries=stated,
            reasoning=point_to(self._desk, parent.run.root, thought),
        )
        task = child.task
        asked = None if call is None else call.task
        contents = [
            self._desk.text(TASK, within_limit(task) if task is not None and task.strip() else NOT_THERE),
            self._source(
                key=None if call is None else key_of(call.use),
                at=None if call is None else call.use.at,
                subagent=child.agent,
                link=child.link or "unknown",
                rewritten=(asked is not None and task is not None and asked != task) or None,
            ),
        ]
        if asked is not None and asked != task:
            contents.append(self._desk.text("asked", within_limit(asked)))
        contents += keep_thought(self._desk, thought)
        initiated = self._batch.sign(self._draft(parent, offer, contents))
        accepted = HandoffAccepted(
            handoff=handoff,
            parent=parent.run.id,
            run=run,
            attempt=1,
            agent=to,
            principal=self._by,
            run_key=signer.public_key,
            baton=initiated,
        )
        recorded = self._recorded(run, parent.run.root, to, parent=parent.run.id, handoff=handoff)
        opened = _Open(run=recorded, signer=signer)
        first = next((step for step in child.steps if isinstance(step, Task)), None)
        self._add(opened, accepted, [self._source_of(first, subagent=child.agent)], anchor=initiated, new=True)
        self._steps(opened, child)
        self._close(opened, outcome_of(child), child)
        parent.handoffs.append(handoff)
        parent.children.append(self._batch.head(run))
        self.counts.subagents += 1

    def _thought(self, call: TranscriptCall) -> Thought | None:
        """Return the message that started a sub-agent, by its place in the transcript."""
        if self._messages is None:
            self._messages = self._find_messages()
        place = self._messages.get(call.use.tool_use_id)
        return None if place is None else Thought(place=place)

    def _close(self, opened: _Open, outcome: Outcome, run: TranscriptRun, **facts: object) -> None:
        report = run.report
        contents = [
            self._source(
                key=end_key(run),
                at=run.ended if report is None else report.at,
                status=run.status,
                **facts,
            ),
        ]
        if report is not None:
            contents.append(self._desk.text(REPORT, within_limit(report.text)))
        body = close_out(
            opened.run,
            outcome,
            tuple(sorted(opened.children, key=lambda child: child.run)),
            effects=tuple(opened.effects),
            unverified=tuple(opened.handoffs),
            error=None if outcome is Outcome.COMPLETED else as_code(f"{self._program}.{run.status or 'unfinished'}"),
        )
        self._add(opened, body, contents)
        self._batch.flush()

    def _add(self, opened: _Open, body: Body, contents: list[Content], **more: Any) -> None:  # noqa: ANN401 - a draft's fields
        self._batch.add(self._draft(opened, body, contents, **more))

    def _draft(
        self,
        opened: _Open,
        body: Body,
        contents: list[Content],
        *,
        anchor: Digest | None = None,
        new: bool = False,
        touches: tuple[Touch, ...] = (),
    ) -> Draft:
        return Draft(
            stream=StreamId(opened.run.id),
            body=body,
            root=opened.run.root,
            anchor=anchor,
            new=new,
            cosigner=opened.signer if body.kind in SIGNED_BY_RUN else None,
            contents=tuple(contents),
            touches=touches,
            session=self._session,
        )

    def _source_of(self, said: Prompt | Task | None, **facts: object) -> Content:
        return self._source(key=None, **facts) if said is None else self._source(key=said.uuid, at=said.at, **facts)

    def _source(self, **facts: object) -> Content:
        info = self._conversation.info
        return self._desk.json(SOURCE, describe_source(self._program, info.id, info.version, **facts))

    def _key(self, opened: _Open, described: bytes) -> Digest:
        same = sha256(described).digest()  # arguments may be long, and a session has many
        opened.identical[same] += 1
        scope = opened.run.handoff or opened.run.root
        number = str(opened.identical[same]).encode()
        return self._digest(b"call", scope.encode(), described, number, root=opened.run.root)

    def _digest(self, *parts: bytes, root: RunId) -> Digest:
        return self._desk.secrets.digest(root, *parts)

    def _recorded(
        self,
        run: RunId,
        root: RunId,
        agent: AgentId,
        *,
        parent: RunId | None = None,
        handoff: HandoffId | None = None,
    ) -> Run:
        return Run(
            id=run,
            root=root,
            parent=parent,
            handoff=handoff,
            attempt=1,
            agent=agent,
            principal=self._by,
            state=RunState.OPEN,
            started_at=self._desk.clock.now(),
            ended_at=None,
        )


def _carried(words: Content) -> Carried:
    return Carried(item=words.ref.id, digest=words.ref.digest, part=Part.INTENT)
