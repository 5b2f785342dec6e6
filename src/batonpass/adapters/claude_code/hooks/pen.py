"""Writing receipts about a session: what all of them have in common, and those about words and calls."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.hooks.events import Event
from batonpass.adapters.claude_code.hooks.holding import Tables, held, table_of
from batonpass.adapters.claude_code.hooks.meaning import meaning_of
from batonpass.adapters.claude_code.hooks.remembering import SAID, STATEMENT
from batonpass.adapters.claude_code.hooks.state import Made, SessionState, Track
from batonpass.adapters.claude_code.patches import EDITORS
from batonpass.adapters.claude_code.places import relative_path
from batonpass.adapters.claude_code.sources import PROGRAM, SOURCE, describe_recorded, series_of, session_id_of
from batonpass.adapters.claude_code.telling import (
    Change,
    as_agent,
    as_code,
    describe_arguments,
    is_reading,
    label_of,
    within_limit,
)
from batonpass.errors import BudgetExhaustedError
from batonpass.handoff.calls.authority import Guarded, guard, see
from batonpass.handoff.calls.judged import judged
from batonpass.handoff.calls.limits import Counting, after_call, before_call, explain_spent, find_overdue
from batonpass.handoff.calls.values import keep_result, readable
from batonpass.handoff.desk import Desk
from batonpass.handoff.starting import start_run
from batonpass.handoff.using import SCOPE
from batonpass.model.bodies import (
    Body,
    Carried,
    HandoffLate,
    Part,
    RunGap,
    RunRecorded,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.charge import Within
from batonpass.model.content import Content
from batonpass.model.entry import Touch
from batonpass.model.ids import AgentId, Digest, PrincipalId, new_call_id
from batonpass.model.receipt import Mode
from batonpass.relay import Relay

_LARGEST: Final = 16 * 1024 * 1024

# What was in the file before stands in the change; what was written, in the arguments. Once is enough.
_TOLD_ELSEWHERE: Final = frozenset({"originalFile", "content", "oldString", "newString"})


class Pen:
    """Writes what happened in the sessions of one project."""

    def __init__(self, relay: Relay, project: Path, mode: Mode, tables: Tables) -> None:
        self._relay = relay
        self._project = project
        self._mode = mode
        self._tables = tables

    @property
    def desk(self) -> Desk:
        """Return where receipts are made."""
        return self._relay.desk

    def start(self, state: SessionState, by: PrincipalId, words: str | None, key: str | None) -> Track:
        """Begin the root run of a session with the human's first words; None if nobody heard them.

        It begins what the file grants, which is tried out where the session is only watched. Raises `PolicyFileError`
        where it is enforced and nobody can read the file.
        """
        grant = table_of(self._tables, AgentId(PROGRAM), self._mode, self.desk.clock.now())
        holding = start_run(
            self.desk,
            None if words is None else within_limit(words),
            by=by,
            agent=PROGRAM,
            series=series_of(state.session),
            session=session_id_of(state.session),
            mode=self._mode,
            contents=(self.source(state, key=key),),
            labelled=False,
            grant=grant,
        )
        # Whoever has its key works on it: the next event may be another process's.
        track = Track(working=replace(holding.working, epoch=None))
        state.add(track)
        if words is not None and key is not None:
            state.prompts[key] = words
        return track

    def write_words(self, state: SessionState, track: Track, words: str, key: str | None) -> None:
        """Write down what the human says later."""
        content = self.desk.text(STATEMENT, within_limit(words))
        item = Carried(item=content.ref.id, digest=content.ref.digest, part=Part.INTENT)
        body = RunRecorded(run=track.id, by=track.working.run.principal, items=(item,))
        self.record(track, body, content, self.source(state, key=key))
        if key is not None:
            state.prompts[key] = words

    def write_said(self, state: SessionState, track: Track, words: str, prompt: str | None) -> None:
        """Write down with which words the main conversation answered."""
        body = RunRecorded(run=track.id, by=PrincipalId(f"agent:{PROGRAM}"), items=())
        source = self.source(state, key=None if prompt is None else f"stop/{prompt}")
        self.record(track, body, self.desk.text(SAID, within_limit(words)), source)
        state.said = words

    def request(self, state: SessionState, track: Track, event: Event) -> Made:
        """Write down that a call is about to be made, if what holds its run lets it be made.

        Raises `GrantError` and `CallError`.
        """
        holding = held(self.desk, track)
        guarded = guard(self.desk, holding, meaning_of(event, self._project))
        overdue = next(find_overdue(holding.bounds.accounts, self.desk.clock.now()), None)
        if overdue is not None and track.working.mode is Mode.ENFORCED:
            raise overdue[1]
        return self._request(state, track, event, guarded)

    def request_late(self, state: SessionState, track: Track, event: Event) -> Made:
        """Write down that a call was made before anybody knew: nothing can stop it any more."""
        holding = held(self.desk, track)
        tried = see(self.desk, holding, meaning_of(event, self._project))
        return self._request(state, track, event, Guarded(Counting(()), tried), late=True)

    def _request(
        self, state: SessionState, track: Track, event: Event, guarded: Guarded, *, late: bool = False
    ) -> Made:
        described = describe_arguments(event.tool, event.input)
        target = self._target(event)
        body = ToolRequested(
            run=track.id,
            call=new_call_id(self.desk.clock.now()),
            tool=as_agent(event.tool),
            key=self._key(track, described),
            target=None if target is None else self.digest(track, b"target", target.encode()),
            reads=is_reading(event.tool),
        )
        source = self.source(state, key=event.call, late=late or None)
        contents = [self.desk.json("arguments", described), source]
        if target is not None:
            contents.append(self.desk.text("target", target))
        if guarded.tried is not None:
            contents.append(self.desk.text(SCOPE, str(guarded.tried)))
            contents += judged(self.desk, held(self.desk, track).bounds.terms, guarded.tried)
        if guarded.reason is not None:
            contents.append(self.desk.refusal(guarded.reason))
        self._record_counted(track, replace(body, flags=guarded.flags), contents, guarded.counting)
        if body.key is not None:
            track.keys.add(body.key)
        if not body.reads:
            track.effects.append(body.call)
        counted = guarded.counting.counted()
        made = state.calls[event.call] = Made(id=body.call, run=track.id, tool=event.tool, counted=counted)
        return made

    def _record_counted(self, track: Track, body: ToolRequested, contents: list[Content], counting: Counting) -> None:
        """Write a request with what it uses up, if there is room. Raises `GrantRevokedError` and `CallError`."""
        enforced = track.working.mode is Mode.ENFORCED
        while True:
            charged = replace(body, charges=before_call(counting.counted()))
            try:
                self.record(track, charged, *contents, within=counting.within() if enforced else ())
            except BudgetExhaustedError as refused:
                if counting.has_other(refused):
                    continue
                raise explain_spent(held(self.desk, track).bounds, refused)[1] from None
            return

    def deny(self, state: SessionState, track: Track, event: Event, rule: str, sentence: str) -> None:
        """Write down that a call was refused before it was made."""
        call = new_call_id(self.desk.clock.now())
        body = ToolDenied(run=track.id, call=call, tool=as_agent(event.tool), rule=as_code(rule))
        self.record(
            track,
            body,
            self.desk.json("arguments", describe_arguments(event.tool, event.input)),
            self.desk.text("message", within_limit(sentence)),
            self.source(state, key=event.call),
        )
        made = Made(id=call, run=track.id, tool=event.tool, open=False, denied=sentence)
        state.calls[event.call] = made

    def complete(
        self,
        state: SessionState,
        made: Made,
        name: str,
        result: object,
        *,
        changes: tuple[Change, ...] = (),
        flags: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Write down what a call returned, and what it changed."""
        body = ToolCompleted(
            run=made.run,
            call=made.id,
            flags=flags,
            changes=tuple(change.changed for change in changes),
            label=label_of(made.tool),
        )
        kept = self._result(made.tool, result)
        used = after_call(made.counted, cost=0, rows=0, size=len(kept.body))
        contents = (kept, self.source(state, key=name, unseen=notes or None))
        self._write_outcome(state, made, replace(body, charges=used), contents, changes)

    def fail(
        self,
        state: SessionState,
        made: Made,
        name: str,
        message: str,
        *,
        error: str,
        changes: tuple[Change, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Write down how a call failed, and what it changed all the same."""
        body = ToolFailed(
            run=made.run,
            call=made.id,
            error=as_code(f"{PROGRAM}.{error}"),
            changes=tuple(change.changed for change in changes),
            label=label_of(made.tool),
        )
        words = self.desk.text("message", within_limit(message))
        self._write_outcome(state, made, body, (words, self.source(state, key=name, unseen=notes or None)), changes)

    def write_late(self, state: SessionState, made: Made, name: str, result: object, *, completed: bool) -> None:
        """Write down what came of a call whose run was over by then: as evidence, beside it."""
        run = state.runs[made.run].working.run
        if run.handoff is not None:
            late = HandoffLate(handoff=run.handoff, run=run.id, call=made.id, completed=completed)
            contents = (self._result(made.tool, result), self.source(state, key=name))
            self.desk.recording.act(run.handoff, lambda _, __: late, contents)
        made.open = False

    def write_gap(self, state: SessionState, track: Track, reasons: list[str]) -> None:
        """Write down that so many events were not recorded, and why."""
        body = RunGap(run=track.id, calls=len(reasons))
        self.record(track, body, self.desk.text("reason", within_limit("\n".join(reasons))), self.source(state))

    def record(
        self,
        track: Track,
        body: Body,
        *contents: Content,
        touches: tuple[Touch, ...] = (),
        within: tuple[Within, ...] = (),
    ) -> None:
        """Write one receipt into a run's stream. Raises `BudgetExhaustedError` for what is not within its limits."""
        self.desk.recording.record(track.working, body, contents, touches=touches, within=within)

    def source(self, state: SessionState, **facts: object) -> Content:
        """Return what a receipt says about where it comes from."""
        return self.desk.json(SOURCE, describe_recorded(state.session, **facts))

    def digest(self, track: Track, *parts: bytes) -> Digest:
        """Return the digest of some parts, keyed with the secret of a run's tree."""
        return self.desk.secrets.digest(track.working.run.root, *parts)

    def _write_outcome(
        self,
        state: SessionState,
        made: Made,
        body: ToolCompleted | ToolFailed,
        contents: tuple[Content, ...],
        changes: tuple[Change, ...],
    ) -> None:
        every = (*contents, *(change.content for change in changes))
        self.record(state.runs[made.run], body, *every, touches=tuple(change.touch for change in changes))
        made.open = False

    def _result(self, tool: str, result: object) -> Content:
        if tool in EDITORS and isinstance(result, dict):
            result = {name: value for name, value in result.items() if name not in _TOLD_ELSEWHERE}
        body, media_type = keep_result(result)
        if len(body) > _LARGEST:
            body, media_type = f"({len(body):,} bytes)".encode(), "text/plain"
        return self.desk.result(body, media_type)

    def _target(self, event: Event) -> str | None:
        path = event.path
        return None if path is None else readable(relative_path(path, self._project))

    def _key(self, track: Track, described: bytes) -> Digest:
        scope = (track.working.run.handoff or track.working.run.root).encode()
        number = 1
        while (key := self.digest(track, b"call", scope, described, str(number).encode())) in track.keys:
            number += 1
        return key
