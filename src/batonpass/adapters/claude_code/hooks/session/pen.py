"""Writing receipts about a session: what all of them have in common, and those about words and calls."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from batonpass.adapters.claude_code.hooks.events import HookEvent, task_of
from batonpass.adapters.claude_code.hooks.rules.directory_policy import Ruled, wrong_file
from batonpass.adapters.claude_code.hooks.rules.refusal import Refusal, find_refusal
from batonpass.adapters.claude_code.hooks.rules.tool_actions import HookedCall, call_of, same_arguments
from batonpass.adapters.claude_code.hooks.session.recovery import SAID, STATEMENT, UNLET
from batonpass.adapters.claude_code.hooks.session.state import Going, HookSession, MadeCall, Track
from batonpass.adapters.claude_code.importer.import_sources import PROGRAM, describe_recorded, series_of, session_id_of
from batonpass.adapters.claude_code.importer.receipt_words import as_code, within_limit
from batonpass.adapters.claude_code.transcripts.patches import EDITORS
from batonpass.errors import CallError, CallOutcomeError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.call_receipts import deny_call
from batonpass.handoff.calls.finish import fail_call, finish_call, keep_late
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.files.background_commits import REST_OF
from batonpass.handoff.files.edited_files import Watched
from batonpass.handoff.files.protected_paths import RecorderProcess
from batonpass.handoff.files.work_tree import SeenChanges
from batonpass.handoff.grants.policy_tables import has_ended
from batonpass.handoff.history.past_calls import read_runs
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.sessions.earlier_roots import find_denied, find_earlier, less_used
from batonpass.handoff.sessions.start import start_run
from batonpass.handoff.taint.intake import take_in
from batonpass.handoff.tools.json_values import keep_result
from batonpass.model.base.content_names import ARGUMENTS, SOURCE
from batonpass.model.base.ids import AgentId, CallId, ContentId, PrincipalId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import Body, Carried, Part, RunGap, RunRecorded
from batonpass.model.grants.grant import Grant
from batonpass.model.ledger.content import Content
from batonpass.relay import Relay, desk_of

if TYPE_CHECKING:
    from batonpass.errors import PolicyFileError

_LARGEST: Final = 16 * 1024 * 1024

# What was in the file before stands in the change; what was written, in the arguments. Once is enough.
_TOLD_ELSEWHERE: Final = frozenset({"originalFile", "content", "oldString", "newString"})


class Pen:
    """Writes what happened in the sessions of one project. Calls and handoffs go the way that every door's go."""

    def __init__(self, relay: Relay, project: Path, mode: Mode) -> None:
        self._relay = relay
        self._project = project
        self._mode = mode
        self._ruled = Ruled()
        self.wrong: PolicyFileError | None = None  # what is wrong with the file of the directory

    @property
    def desk(self) -> Desk:
        """Return where receipts are made. What ends this process would end the record, so that is protected too."""
        desk = desk_of(self._relay)
        if desk.protected.process is None:
            desk.protected = dataclasses.replace(
                desk.protected, process=RecorderProcess(os.getpid(), tuple(sys.orig_argv))
            )
        return desk

    def follow(self, ruled: Ruled) -> None:
        """Hold everything from now on to what the file of the directory says."""
        self._ruled = ruled
        self.wrong = None
        if ruled.policy is not None:
            self.desk.gates = ruled.policy

    def enforces(self, track: Track) -> bool:
        """Return whether what speaks against a call of a run stops it."""
        return self.desk.gates.enforce or track.working.mode is Mode.ENFORCED

    def find_refusal(self, track: Track, event: HookEvent) -> Refusal | None:
        """Return what the rules for its agent say against a call: for the type that was offered the work."""
        if self.wrong is not None:
            return wrong_file(self.wrong)
        return find_refusal(event, self._ruled.rules, self._project, track.kind)

    def start(self, state: HookSession, by: PrincipalId, words: str | None, key: str | None) -> Track:
        """Begin the root run of a session with the human's first words; None if nobody heard them.

        It begins what the file grants, which is tried out where the session is only watched. Raises `PolicyFileError`
        where it is enforced and nobody can read the file: without it, it would begin with no grant at all.
        """
        if self.wrong is not None:
            raise self.wrong
        known = self._known_from_outside(state)
        holding = start_run(
            self.desk,
            None if words is None else within_limit(words),
            by=by,
            agent=PROGRAM,
            series=series_of(state.session),
            session=session_id_of(state.session),
            mode=self._mode,
            contents=(self.source(state, key=key),),
            # Of a session that began before anybody listened, nobody knows what reached it.
            labelled=words is not None,
            grant=self._left_of_table(state, by),
        )
        # Whoever has its key works on it: the next event may be another process's.
        holding.working = replace(holding.working, epoch=None)
        take_in(self.desk, holding, known)
        with self.desk.store.view() as view:
            holding.denied_before = find_denied(view, find_earlier(view, series_of(state.session), by, holding.id))
        track = Track(holding=holding)
        state.add(track)
        if words is not None and key is not None:
            state.prompts[key] = words
        return track

    def _left_of_table(self, state: HookSession, by: PrincipalId) -> Grant | None:
        """Return what is left of the table of this session, if it goes on; None: the table holds as it is, or none."""
        table = self.desk.gates.grants.get(AgentId(PROGRAM))
        if table is None or has_ended(table, self.desk.clock.now()):
            return None
        with self.desk.store.view() as view:
            earlier = find_earlier(view, series_of(state.session), by)
            return less_used(view, table, earlier) if earlier else None

    def _known_from_outside(self, state: HookSession) -> tuple[Source, ...]:
        """Return what came from outside to the last run of this very session: its model remembers all of it."""
        with self.desk.store.view() as view:
            last = next(iter(view.find_runs(series=series_of(state.session))), None)
            if last is None:
                return ()
            past = read_runs(view, [last], StreamId(last.id))
            return tuple(source for source in past.taint if source not in past.endorsed)

    def write_words(self, state: HookSession, track: Track, words: str, key: str | None) -> None:
        """Write down what the human says later."""
        content = self.desk.text(STATEMENT, within_limit(words))
        item = Carried(item=content.ref.id, digest=content.ref.digest, part=Part.INTENT)
        body = RunRecorded(run=track.id, by=track.working.run.principal, items=(item,))
        self.record(track, body, content, self.source(state, key=key))
        if key is not None:
            state.prompts[key] = words

    def write_said(self, state: HookSession, track: Track, words: str, prompt: str | None) -> None:
        """Write down with which words the main conversation answered."""
        body = RunRecorded(run=track.id, by=PrincipalId(f"agent:{PROGRAM}"), items=())
        source = self.source(state, key=None if prompt is None else f"stop/{prompt}")
        self.record(track, body, self.desk.text(SAID, within_limit(words)), source)
        state.said = words

    def request(
        self,
        state: HookSession,
        track: Track,
        event: HookEvent,
        after: Mapping[str, str] | None = None,
        *more: Content,
    ) -> MadeCall:
        """Have a call judged and written down before it is made; `after`: it was made already, and that is odd of it.

        Raises `GrantError` and `CallError` for one that must not be made, once that is on record.
        """
        call = self._call(event, self.find_refusal(track, event))
        late = after is not None
        source = self.source(state, key=event.call, late=late or None)
        begun = begin_call(self.desk, track.holding, call, beside=(source, *more), made=late, noted=after or {})
        if isinstance(begun, Replayed):
            raise TypeError("a session that goes on repeats nothing")
        before = state.calls.get(event.call)
        made = state.calls[event.call] = MadeCall(
            id=begun.call,
            run=track.id,
            tool=event.tool,
            begun=begun,
            asked=call.described,
            path=event.path,
            denied=before.denied if late and before is not None else None,  # who asks again is refused again
        )
        return made

    def request_rest(
        self, state: HookSession, track: Track, event: HookEvent, going: Going, after: Mapping[str, str]
    ) -> MadeCall:
        """Write down the rest of a call that had returned; commits that came since then are its own."""
        made = self.request(state, track, event, after, self.desk.text(REST_OF, going.made.id))
        if made.begun is not None:
            watched = Watched(self.desk.files.root, {}, going.history)
            made.begun = replace(made.begun, watched=watched)
        return made

    def take_in(self, track: Track, other: Track) -> None:
        """Let what another run knows from outside reach a run that hears of it before it is over."""
        take_in(self.desk, track.holding, tuple(other.holding.taint.entered))

    def refuse(self, state: HookSession, track: Track, event: HookEvent, rule: str, sentence: str) -> None:
        """Write down that a call was refused that never got as far as being judged: one that starts a sub-agent."""
        source = self.source(state, key=event.call)
        tool = self._call(event).declared.name
        deny_call(self.desk, track.holding, tool, event.input, rule=rule, reason=sentence, beside=(source,))

    def remember_refusal(self, state: HookSession, track: Track, event: HookEvent, sentence: str) -> None:
        """Know that a call was refused: whoever is told of it twice gives the same answer."""
        asked = self._call(event).described
        state.calls[event.call] = MadeCall(
            id=CallId(""), run=track.id, tool=event.tool, open=False, denied=sentence, asked=asked
        )

    def is_told_twice(self, made: MadeCall, event: HookEvent) -> bool:
        """Return whether an event is about a call that is known: its name alone says nothing, the call does."""
        return made.tool == event.tool and made.asked in {None, self._call(event).described}

    def is_made_as_asked(self, made: MadeCall, event: HookEvent) -> bool:
        """Return whether a call was made with the arguments with which it was asked for.

        A program fills in what it takes for granted, and spells paths from the root on: that is the same call. One that
        says nothing of arguments says nothing against them, and what was erased cannot be compared.
        """
        if made.tool != event.tool:
            return False
        asked = made.asked if made.kept is None else self._read_asked(made.kept)
        used = self._call(event).described
        if not event.input or asked is None or used == asked:
            return True
        # The ledger keeps no secrets: what is compared with it is compared as it would be kept.
        kept = used if made.kept is None else self.desk.json(ARGUMENTS, used).body
        return same_arguments(asked, kept, event, self._project)

    def _read_asked(self, content: ContentId) -> bytes | None:
        with self.desk.store.view() as view:
            return view.get_content(content).body

    def complete(
        self,
        state: HookSession,
        made: MadeCall,
        event: HookEvent,
        result: object,
        *,
        seen: SeenChanges,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Write down what a call returned, and what it changed.

        Raises `CallError` and `CallOutcomeError`, once that is on record, where it should not have done that.
        """
        try:
            finish_call(
                self.desk,
                state.runs[made.run].holding,
                _begun(made),
                self._call(event),
                _told(made.tool, result),
                seen=seen,
                beside=(self.source(state, key=event.call, unseen=notes or None, task=task_of(result)),),
            )
        except (CallError, CallOutcomeError):
            made.open = False  # that is on record; what could not be recorded can be told again
            raise
        made.open = False

    def fail(
        self,
        state: HookSession,
        made: MadeCall,
        event: HookEvent,
        message: str,
        *,
        error: str,
        seen: SeenChanges | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Write down how a call failed, and what it changed all the same."""
        fail_call(
            self.desk,
            state.runs[made.run].holding,
            _begun(made),
            self._call(event),
            Fault(as_code(f"{PROGRAM}.{error}"), within_limit(message)),
            seen=seen or SeenChanges(),
            beside=(self.source(state, key=event.call, unseen=notes or None),),
        )
        made.open = False

    def write_late(self, state: HookSession, made: MadeCall, name: str, result: object, *, completed: bool) -> None:
        """Write down what came of a call whose run was over by then: as evidence, beside it."""
        body, media_type = keep_result(_told(made.tool, result))
        contents = (self.desk.result(body, media_type), self.source(state, key=name))
        keep_late(self.desk, state.runs[made.run].holding, _begun(made), *contents, completed=completed)
        made.open = False

    def end_unmade(self, state: HookSession, made: MadeCall, event: HookEvent, instead: MadeCall) -> None:
        """Write down that a call was not made as it was asked for, and which one was made in its place."""
        fail_call(
            self.desk,
            state.runs[made.run].holding,
            _begun(made),
            self._call(event),
            Fault(as_code(f"{PROGRAM}.made-otherwise"), f"call {instead.id} was made in its place"),
            made=False,
            beside=(self.source(state, key=event.call),),
        )
        made.open = False

    def write_unlet(self, state: HookSession, track: Track, name: str, words: str | None, reason: str) -> None:
        """Write down the end of a sub-agent that nobody let begin: it has no run of its own that could end."""
        if name in state.unlet:
            return  # told twice
        body = RunRecorded(run=track.id, by=PrincipalId(f"agent:{PROGRAM}"), items=())
        contents = [self.source(state, key=f"{UNLET}{name}"), self.desk.text("reason", within_limit(reason))]
        if words is not None and words.strip():
            contents.append(self.desk.text("report", within_limit(words)))
        self.record(track, body, *contents)
        state.unlet.add(name)

    def write_gap(self, state: HookSession, track: Track, reasons: list[str]) -> None:
        """Write down that so many events were not recorded, and why."""
        body = RunGap(run=track.id, calls=len(reasons))
        self.record(track, body, self.desk.text("reason", within_limit("\n".join(reasons))), self.source(state))

    def record(self, track: Track, body: Body, *contents: Content) -> None:
        """Write one receipt into a run's stream."""
        self.desk.recording.record(track.working, body, contents)

    def source(self, state: HookSession, **facts: object) -> Content:
        """Return what a receipt says about where it comes from."""
        return self.desk.json(SOURCE, describe_recorded(state.session, **facts))

    def _call(self, event: HookEvent, refusal: Refusal | None = None) -> HookedCall:
        return call_of(event, self._project, self._ruled.servers, refusal)


def _begun(made: MadeCall) -> Begun:
    if made.begun is None:
        raise AssertionError("a call that was refused has no outcome")
    return made.begun


def _told(tool: str, result: object) -> object:
    """Return what a call returned, without what its receipts say elsewhere, and without what is too large to keep."""
    if tool in EDITORS and isinstance(result, dict):
        result = {name: value for name, value in result.items() if name not in _TOLD_ELSEWHERE}
    size = len(keep_result(result)[0])
    return result if size <= _LARGEST else f"({size:,} bytes)"
