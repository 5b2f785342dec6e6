"""Records words and calls of a session; the base of everything that writes receipts about one."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.transcript_lines import find_model
from batonpass.adapters.coders.events import HookEvent, task_of
from batonpass.adapters.coders.rules.directory_policy import Ruled, wrong_file
from batonpass.adapters.coders.rules.tool_actions import HookedCall, call_of, same_arguments
from batonpass.adapters.coders.session.changed_files import ChangesFound
from batonpass.adapters.coders.session.hook_session import Going, HookSession, MadeCall, Track
from batonpass.adapters.coders.session.recovery import SAID, STATEMENT, UNLET
from batonpass.adapters.coders.session.sub_agent_link import transcript_of
from batonpass.adapters.importer.import_sources import describe_recorded, series_of, session_id_of
from batonpass.adapters.importer.receipt_words import as_code, within_limit
from batonpass.adapters.tool_kinds import Coder, ToolKind, find_form
from batonpass.errors import CallError, CallOutcomeError
from batonpass.guard.policy.gates import CallFacts, GateDecision, judge_call
from batonpass.handoff.approvals.gate_facts import alarms_of, depth_of
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.call_receipts import deny_call
from batonpass.handoff.calls.finish import fail_call, finish_call, keep_late
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.files.background_commits import REST_OF
from batonpass.handoff.files.edited_files import Watched
from batonpass.handoff.files.protected_paths import RecorderProcess
from batonpass.handoff.grants.policy_tables import has_ended
from batonpass.handoff.history.past_calls import read_runs
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.sessions.earlier_roots import find_denied, find_earlier, less_used
from batonpass.handoff.sessions.start import start_run
from batonpass.handoff.taint.intake import take_in
from batonpass.handoff.tools.json_values import keep_result
from batonpass.model.base.content_names import ARGUMENTS, REASON, REPORT, SOURCE
from batonpass.model.base.ids import AgentId, CallId, PrincipalId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import Body, Carried, Part, RunGap, RunRecorded
from batonpass.model.grants.grant import Grant
from batonpass.model.ledger.content import Content
from batonpass.relay import Relay, desk_of

if TYPE_CHECKING:
    from batonpass.errors import PolicyFileError

_LARGEST: Final = 16 * 1024 * 1024

# Left out of results: the change contains the old text, and the arguments the new one.
_TOLD_ELSEWHERE: Final = frozenset({"originalFile", "content", "oldString", "newString"})


class SessionWriter:
    """Records the sessions of one project. Calls and handoffs take the same path as those of every door."""

    def __init__(self, relay: Relay, project: Path, mode: Mode) -> None:
        self._relay = relay
        self._project = project
        self._mode = mode
        self._ruled = Ruled()
        self.wrong: PolicyFileError | None = None  # the error in the policy file

    @property
    def desk(self) -> Desk:
        """Return the desk for receipts. This process is protected too: to end it would end the record."""
        desk = desk_of(self._relay)
        if desk.protected.process is None:
            desk.protected = dataclasses.replace(
                desk.protected, process=RecorderProcess(os.getpid(), tuple(sys.orig_argv))
            )
        return desk

    def follow(self, ruled: Ruled) -> None:
        """Apply a policy from now on."""
        self._ruled = ruled
        self.wrong = None
        if ruled.policy is not None:
            self.desk.gates = ruled.policy

    def enforces(self, track: Track) -> bool:
        """Return whether a refusal stops a call of this run."""
        return self.desk.gates.enforce or track.working.mode is Mode.ENFORCED

    def judge_delegation(self, track: Track, event: HookEvent) -> GateDecision | None:
        """Return the decision of a rule for calls about one that starts a sub-agent; None if it may go on.

        Such a call is recorded as a handoff, which has gates of its own. A rule that holds the call refuses it.
        """
        call = self._call(event, track)
        if call.refusal is not None:
            return call.refusal
        told, declared = call.told_by_door, call.declared
        facts = CallFacts(
            agent=told.agent or track.holding.agent,
            tool=declared.name,
            kin=declared.kin,
            door=told.door,
            used=told.used,
            depth=depth_of(self.desk, track.holding),
            alarms=alarms_of(self.desk, told.agent or track.holding.agent),
        )
        return next(iter(judge_call(facts, self.desk.gates)), None) if self.desk.gates.rules else None

    def start(self, state: HookSession, by: PrincipalId, words: str | None, key: str | None) -> Track:
        """Start the root run of a session with the human's first words; None if they were missed.

        The run gets the grant from the file; in an observed session it is only tried. Raises `PolicyFileError` in an
        enforced session with an invalid file, because the run would have no grant at all.
        """
        if self.wrong is not None:
            raise self.wrong
        known = self._known_from_outside(state)
        holding = start_run(
            self.desk,
            None if words is None else within_limit(words),
            by=by,
            agent=state.coder,
            series=series_of(state.coder, state.session),
            session=session_id_of(state.coder, state.session),
            mode=self._mode,
            contents=(self.source(state, key=key),),
            # If the session began before the recording, it is unknown what reached it.
            labelled=words is not None,
            grant=self._left_of_table(state, by),
        )
        # No epoch: the next event may be handled by another process that has the key.
        holding.working = replace(holding.working, epoch=None)
        take_in(self.desk, holding, known)
        with self.desk.store.view() as view:
            holding.denied_before = find_denied(
                view, find_earlier(view, series_of(state.coder, state.session), by, holding.id)
            )
        track = Track(holding=holding)
        state.add(track)
        if words is not None and key is not None:
            state.prompts[key] = words
        return track

    def _left_of_table(self, state: HookSession, by: PrincipalId) -> Grant | None:
        """Return the rest of the file's grant for a resumed session; None to use the file's grant as it is."""
        table = self.desk.gates.grants.get(AgentId(state.coder))
        if table is None or has_ended(table, self.desk.clock.now()):
            return None
        with self.desk.store.view() as view:
            earlier = find_earlier(view, series_of(state.coder, state.session), by)
            return less_used(view, table, earlier) if earlier else None

    def _known_from_outside(self, state: HookSession) -> tuple[Source, ...]:
        """Return the external sources of this session's last run: its model still remembers them."""
        with self.desk.store.view() as view:
            last = next(iter(view.find_runs(series=series_of(state.coder, state.session))), None)
            if last is None:
                return ()
            past = read_runs(view, [last], StreamId(last.id))
            return tuple(source for source in past.taint if source not in past.endorsed)

    def write_words(self, state: HookSession, track: Track, words: str, key: str | None) -> None:
        """Record later words of the human."""
        content = self.desk.text(STATEMENT, within_limit(words))
        item = Carried(item=content.ref.id, digest=content.ref.digest, part=Part.INTENT)
        body = RunRecorded(run=track.id, by=track.working.run.principal, items=(item,))
        self.record(track, body, content, self.source(state, key=key))
        if key is not None:
            state.prompts[key] = words

    def write_said(self, state: HookSession, track: Track, words: str, prompt: str | None) -> None:
        """Record the answer of the main conversation."""
        body = RunRecorded(run=track.id, by=PrincipalId(f"agent:{state.coder}"), items=())
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
        """Have a call checked and recorded before it is made. With `after`, it was already made, and that is noted.

        Raises `GrantError` or `CallError`, after recording it, for a call that must not be made.
        """
        call = self._call(event, track)
        late = after is not None
        source = self.source(
            state, key=event.call, late=late or None, inferred=event.inferred or None, among=event.among or None
        )
        begun = begin_call(self.desk, track.holding, call, beside=(source, *more), made=late, noted=after or {})
        if isinstance(begun, Replayed):
            raise TypeError("a resumed session never replays a call")
        before = state.calls.get(event.call)
        made = state.calls[event.call] = MadeCall(
            id=begun.call,
            run=track.id,
            tool=event.tool,
            begun=begun,
            asked=call.described,
            path=event.path,
            denied=before.denied if late and before is not None else None,  # a repeated request is refused again
        )
        return made

    def request_rest(
        self, state: HookSession, track: Track, event: HookEvent, going: Going, after: Mapping[str, str]
    ) -> MadeCall:
        """Record the rest of a call that had returned; commits since then are its own."""
        made = self.request(state, track, event, after, self.desk.text(REST_OF, going.made.id))
        if made.begun is not None:
            watched = Watched(self.desk.files.root, {}, going.history)
            made.begun = replace(made.begun, watched=watched)
        return made

    def take_in(self, track: Track, other: Track) -> None:
        """Taint a run with the external sources of another whose output it reads."""
        take_in(self.desk, track.holding, tuple(other.holding.taint.entered))

    def refuse(self, state: HookSession, track: Track, event: HookEvent, rule: str, sentence: str) -> None:
        """Record the refusal of a call that was not checked further: one that starts a sub-agent."""
        source = self.source(state, key=event.call)
        tool = self._call(event).declared.name
        deny_call(self.desk, track.holding, tool, event.input, rule=rule, reason=sentence, beside=(source,))

    def remember_refusal(self, state: HookSession, track: Track, event: HookEvent, sentence: str) -> None:
        """Remember a refusal, so that a repeated event gets the same answer."""
        asked = self._call(event).described
        state.calls[event.call] = MadeCall(
            id=CallId(""), run=track.id, tool=event.tool, open=False, denied=sentence, asked=asked
        )

    def is_told_twice(self, made: MadeCall, event: HookEvent) -> bool:
        """Return whether an event repeats a known call: the id alone does not prove it, the arguments do."""
        return made.tool == event.tool and made.asked in {None, self._call(event).described}

    def is_made_as_asked(self, made: MadeCall, event: HookEvent) -> bool:
        """Return whether a call was made with the arguments that were asked about.

        The program fills in defaults and makes paths absolute: that is the same call. An event without arguments
        contradicts nothing, and erased arguments cannot be compared.
        """
        if made.tool != event.tool:
            return False
        asked = made.asked
        if made.kept is not None:
            with self.desk.store.view() as view:
                asked = view.get_content(made.kept).body
        used = self._call(event).described
        if not event.input or asked is None or used == asked:
            return True
        # The ledger contains no secrets, so the arguments are redacted before they are compared with it.
        kept = used if made.kept is None else self.desk.json(ARGUMENTS, used).body
        return same_arguments(asked, kept, event, self._project)

    def complete(
        self,
        state: HookSession,
        made: MadeCall,
        event: HookEvent,
        result: object,
        *,
        seen: ChangesFound,
    ) -> None:
        """Record the result and the changes of a call.

        Raises `CallError` or `CallOutcomeError`, after recording it, if the call did something forbidden.
        """
        model = event.model or (find_model(transcript_of(event, event.agent), event.call) if seen.changes else None)
        source = self.source(state, key=event.call, unseen=seen.notes or None, task=task_of(result), model=model)
        try:
            finish_call(
                self.desk,
                state.runs[made.run].holding,
                _begun(made),
                self._call(event),
                _told(state.coder, made.tool, result),
                seen=seen,
                beside=(source,),
            )
        except (CallError, CallOutcomeError):
            made.open = False  # it is recorded; after any other error the event can be repeated
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
        seen: ChangesFound | None = None,
        made_at_all: bool = True,
    ) -> None:
        """Record how a call failed, and the files that it changed anyway; or that it was not made at all."""
        fail_call(
            self.desk,
            state.runs[made.run].holding,
            _begun(made),
            self._call(event),
            Fault(as_code(f"{state.coder}.{error}"), within_limit(message)),
            made=made_at_all,
            seen=seen or ChangesFound(),
            beside=(
                self.source(state, key=event.call, unseen=(seen.notes if seen else ()) or None, model=event.model),
            ),
        )
        made.open = False

    def write_late(self, state: HookSession, made: MadeCall, name: str, result: object, *, completed: bool) -> None:
        """Record the outcome of a call whose run was already over, as evidence next to it."""
        body, media_type = keep_result(_told(state.coder, made.tool, result))
        contents = (self.desk.result(body, media_type), self.source(state, key=name))
        keep_late(self.desk, state.runs[made.run].holding, _begun(made), *contents, completed=completed)
        made.open = False

    def write_unlet(self, state: HookSession, track: Track, name: str, words: str | None, reason: str) -> None:
        """Record the end of a sub-agent that was not allowed to start: it has no run of its own."""
        if name in state.unlet:
            return  # a repeated event
        body = RunRecorded(run=track.id, by=PrincipalId(f"agent:{state.coder}"), items=())
        contents = [self.source(state, key=f"{UNLET}{name}"), self.desk.text(REASON, within_limit(reason))]
        if words is not None and words.strip():
            contents.append(self.desk.text(REPORT, within_limit(words)))
        self.record(track, body, *contents)
        state.unlet.add(name)

    def write_gap(self, state: HookSession, track: Track, reasons: list[str]) -> None:
        """Record how many events were missed, and why."""
        body = RunGap(run=track.id, calls=len(reasons))
        self.record(track, body, self.desk.text(REASON, within_limit("\n".join(reasons))), self.source(state))

    def record(self, track: Track, body: Body, *contents: Content) -> None:
        """Add a receipt to a run's stream."""
        self.desk.recording.record(track.working, body, contents)

    def source(self, state: HookSession, **facts: object) -> Content:
        """Return the source of a receipt."""
        return self.desk.json(SOURCE, describe_recorded(state.coder, state.session, **facts))

    def _call(self, event: HookEvent, track: Track | None = None) -> HookedCall:
        """Return the call of an event; with a run, as it is judged."""
        refusal = None if self.wrong is None else wrong_file(self.wrong, event.coder)
        kind = None if track is None else track.kind
        return call_of(event, self._project, self._ruled.servers, refusal=refusal, kind=kind)


def _begun(made: MadeCall) -> Begun:
    if made.begun is None:
        raise AssertionError("a call that was refused has no outcome")
    return made.begun


def _told(coder: Coder, tool: str, result: object) -> object:
    """Return the result of a call without parts that are recorded elsewhere, or its size if it is too large."""
    form = find_form(coder, tool)
    if form is not None and form.kind is ToolKind.WRITER and isinstance(result, dict):
        result = {name: value for name, value in result.items() if name not in _TOLD_ELSEWHERE}
    size = len(keep_result(result)[0])
    return result if size <= _LARGEST else f"({size:,} bytes)"
