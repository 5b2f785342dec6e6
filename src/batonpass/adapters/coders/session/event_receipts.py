"""Turns the events of a session into receipts."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.delegation_message import find_message
from batonpass.adapters.claude_code.transcripts.transcript_reader import find_last_results, read_first_words
from batonpass.adapters.coders.dialects.dialect import Dialect
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.events import HookEvent, is_agent_id, task_listened_to, task_of
from batonpass.adapters.coders.session.changed_files import ChangesFound, Changing
from batonpass.adapters.coders.session.delegation import Delegating, Delegation
from batonpass.adapters.coders.session.hook_session import Going, HookSession, MadeCall, OfferedByCall, Track
from batonpass.adapters.coders.session.sub_agent_link import (
    OfferLink,
    find_link,
    nested_name,
    read_meta,
    transcript_of,
)
from batonpass.adapters.session_files.session_values import LinkedBy, ToolResult
from batonpass.adapters.tool_kinds import Coder, ToolKind
from batonpass.attribution.git.arrived_commits import see_history
from batonpass.errors import CallError, CallOutcomeError, GrantError, HandoffError
from batonpass.handoff.files.work_tree import UNSEEN
from batonpass.handoff.shell.command_reach import goes_on_after
from batonpass.handoff.tools.json_values import readable
from batonpass.handoff.tools.refusal_sentences import MADE, TOLD, not_made, sentence_for
from batonpass.model.base.ids import PrincipalId, RunId
from batonpass.model.bodies.body import Outcome
from batonpass.model.bodies.tool_bodies import BACKGROUND, OTHERWISE, REFUSED, UNASKED

# Bytes; enough for many turns. A call that ended further back stays in doubt until the session is imported.
_TAIL: Final = 512 * 1024


def find_outcomes(transcript: Path | None, calls: Collection[str]) -> dict[str, ToolResult]:
    """Return the outcomes of calls in the end of a transcript; missing ones are left out."""
    if transcript is None or not calls:
        return {}
    return {
        result.tool_use_id: result for result in find_last_results(transcript, _TAIL) if result.tool_use_id in calls
    }


_LAUNCHED: Final = "async_launched"
_NOBODY: Final = "no sub-agent is known to have taken it"


class RefusedCall(Struct, frozen=True):
    """A call that must not be made, and the sentence for the model."""

    sentence: str


class Following:
    """Records the events of one session. The caller holds the session's lock."""

    def __init__(self, writer: Delegating, changing: Changing, by: PrincipalId) -> None:
        self._writer = writer
        self._changing = changing
        self._by = by

    def root(self, state: HookSession) -> Track:
        """Return the run of the main conversation; it is started without words if its first prompt was missed."""
        return state.root or self._writer.start(state, self._by, None, None)

    def say(self, state: HookSession, event: HookEvent) -> None:
        """Record words of the human."""
        key = event.prompt_id
        if key is not None and event.prompt in {state.prompts.get(name) for name in _names(state, key)}:
            return  # a repeated event
        if key is not None and (said := len(_names(state, key))):
            key = f"{key}/{said + 1}"  # said while the model worked on an earlier prompt, whose id they share
        if state.root is None:
            self._writer.start(state, self._by, event.prompt, key)
        else:
            self._writer.write_words(state, state.root, event.prompt, key)

    def request(self, state: HookSession, event: HookEvent) -> MadeCall | RefusedCall:
        """Have a call checked and recorded; return a refusal if it must not be made."""
        known = state.calls.get(event.call)
        if known is not None and self._writer.is_told_twice(known, event):
            return known if known.denied is None else RefusedCall(_repeated(known.denied))  # a repeated event
        try:
            track = self.run(state, event)
        except (GrantError, HandoffError) as error:
            # A sub-agent whose offer was refused has no run of its own, so the call is recorded in the root.
            return self._refuse(state, self.root(state), event, error.code.replace("_", "-"), sentence_for(error))
        try:
            return self._writer.request(state, track, event)
        except (GrantError, CallError) as error:
            return self._remember(state, track, event, sentence_for(error))

    def _refuse(self, state: HookSession, track: Track, event: HookEvent, rule: str, sentence: str) -> RefusedCall:
        self._writer.refuse(state, track, event, rule, sentence)
        return self._remember(state, track, event, sentence)

    def _remember(self, state: HookSession, track: Track, event: HookEvent, sentence: str) -> RefusedCall:
        self._writer.remember_refusal(state, track, event, sentence)
        return RefusedCall(sentence)

    def find_made(self, state: HookSession, event: HookEvent) -> MadeCall | None:
        """Return a call that was made, as it was made; None if the event only reports our own refusal.

        The event after a call is compared with the one before it, and decides. A call that nobody asked about, that was
        refused, or that was made with other arguments is recorded now, with that fact.
        """
        known = state.calls.get(event.call)
        if known is None:
            return self._made_already(state, event, UNASKED)
        if known.is_only_refused:
            told_back = event.name == "PostToolUseFailure" and known.denied and known.denied in event.error
            return None if told_back else self._made_already(state, event, REFUSED, known.denied)
        if not known.open or self._writer.is_made_as_asked(known, event):
            return known
        instead = self._made_already(state, event, OTHERWISE)
        if state.runs[known.run].open:
            reason = f"call {instead.id} was made in its place"
            self._writer.fail(state, known, event, reason, error="made-otherwise", made_at_all=False)
        return instead

    def _made_already(self, state: HookSession, event: HookEvent, how: str, why: str | None = None) -> MadeCall:
        try:
            track = self.run(state, event)
        except (GrantError, HandoffError):
            track = self.root(state)  # a sub-agent that was not allowed to start has no run of its own
        words = MADE[how] if not why else f"{MADE[how]}: {why}"
        return self._writer.request(state, track, event, {how: words})

    def finish(
        self, state: HookSession, event: HookEvent, made: MadeCall, found: ChangesFound, looked: MadeCall
    ) -> None:
        """Record the outcome of a call. Raises `CallError` or `CallOutcomeError` if it did something forbidden.

        For a call that continues in the background, `looked` is the call for which the files were looked at.
        """
        if not made.open:
            return  # a repeated event
        goes_on = found.goes_on or (event.kind is ToolKind.SHELL and goes_on_after(event.command or ""))
        if goes_on:
            found = replace(found, goes_on=True)
            history = see_history(self._writer.desk.files.root)
            state.going[event.call] = Going(made=looked, event=event, history=history, task=task_of(event.response))
        self._hear(state, event)
        if not state.runs[made.run].open:
            self._writer.write_late(state, made, event.call, event.error or event.response, completed=not event.error)
        elif event.name == "PostToolUse":
            self._writer.complete(state, made, event, event.response, seen=found)
        else:
            error = "interrupted" if event.interrupted else "failed"
            self._writer.fail(state, made, event, event.error, error=error, seen=found)

    def _hear(self, state: HookSession, event: HookEvent) -> None:
        """Pass on the taint of a running sub-agent to a run that reads its output."""
        task = task_listened_to(event)
        child = None if task is None else state.runs.get(state.agents.get(task, RunId("")))
        if child is not None:
            self._writer.take_in(state.run_of(event.agent) or self.root(state), child)

    def finish_background(self, state: HookSession, name: str, going: Going, found: ChangesFound) -> None:
        """Record the changes that a call made after it had returned, as a separate call."""
        known = state.runs[going.made.run]
        after = replace(going.event, name="PostToolUse", call=f"{name}/background")
        track = known if known.open else self.root(state)
        rest = self._writer.request_rest(state, track, after, going, {BACKGROUND: MADE[BACKGROUND]})
        with suppress(CallError, CallOutcomeError):  # it is on record, and nobody waits for it
            self._writer.complete(state, rest, after, "", seen=found)

    def offer(self, state: HookSession, event: HookEvent) -> str | RefusedCall | None:
        """Record that a sub-agent is about to be started; return the prompt if it gets more than the call asked."""
        if (before := state.calls.get(event.call)) is not None and before.denied is not None:
            return RefusedCall(_repeated(before.denied))  # a repeated event
        track = self.root(state)
        try:
            track = self.run(state, event)
            if (refusal := self._writer.judge_delegation(track, event)) is not None and self._writer.enforces(track):
                return self._refuse(state, track, event, refusal.rule, not_made(refusal.sentence))
            known = state.offer_of(event.call)
            if known is not None:
                self._writer.require_startable(known)
                return self._writer.read_prompt(known)
            return self._writer.offer(state, track, _delegation(event))[1]
        except (GrantError, HandoffError) as error:
            return self._remember(state, track, event, sentence_for(error))

    def start(self, state: HookSession, event: HookEvent) -> None:
        """Record which sub-agent started, if that is certain; else its first call, its end or its result decides."""
        if event.agent is None or state.root is None or state.run_of(event.agent) is not None:
            return
        if event.coder is Coder.CLAUDE_CODE:
            meta = read_meta(event)
            offered = None if meta is None else state.offer_of(meta.call)
            if offered is not None and offered.child is None and not offered.ended:
                self._writer.accept(state, offered, event.agent, LinkedBy.META)
            return
        link = find_link(state, event)
        if link.offered is not None and link.how != LinkedBy.INFERRED and event.agent not in state.agents:
            self._writer.accept(state, link.offered, event.agent, link.how)

    def take_task(self, state: HookSession, event: HookEvent) -> None:
        """Record which offer a sub-agent took, by the task that it was given as a prompt."""
        if event.agent is not None and event.agent not in state.agents and event.prompt.strip():
            with suppress(GrantError, HandoffError):  # its first call is refused with the reason
                self.run(state, event)

    def stop(self, state: HookSession, event: HookEvent) -> None:
        """Record the result of a sub-agent."""
        if event.agent in state.agents and state.run_of(event.agent) is None:
            return  # a repeated event; or it was addressed again and only answered
        try:
            track = self.run(state, event)
        except (GrantError, HandoffError) as error:
            self._writer.write_unlet(state, self.root(state), event.agent or "", event.said, sentence_for(error))
            return
        self.settle(state, track, event)
        # Sub-agents that it started in the background may still be running, and end by themselves.
        self._end(state, track, event.said)

    def finish_delegation(self, state: HookSession, event: HookEvent) -> None:
        """Record the outcome of a call that started a sub-agent."""
        dialect = DIALECTS[event.coder]
        if dialect.tells_ends:
            self._learn_started(state, event, dialect)
            return
        told = event.response if isinstance(event.response, dict) else {}
        agent = told.get("agentId")
        # Older versions do not report the sub-agent at all; only its result is known.
        name = agent if is_agent_id(agent) else nested_name(event.call)
        try:
            offered = self._offered_by(state, event)
            if offered.child is None and not offered.ended:
                self._take(state, offered, name)
        except (GrantError, HandoffError) as error:
            words = readable(dialect.report(event))
            self._writer.write_unlet(state, self.root(state), name, words, sentence_for(error))
            return
        track = None if offered.child is None else state.runs.get(offered.child)
        if track is not None and track.open and told.get("status") != _LAUNCHED:
            self._end(state, track, readable(dialect.report(event)))

    def _learn_started(self, state: HookSession, event: HookEvent, dialect: Dialect) -> None:
        """Record which sub-agent a call started, if its result says so. Its end is an event of its own."""
        agent = dialect.started_agent(event)
        try:
            offered = self._offered_by(state, event)
            if agent is not None and offered.child is None and not offered.ended and agent not in state.agents:
                self._take(state, offered, agent)
        except (GrantError, HandoffError) as error:
            self._writer.write_unlet(state, self.root(state), nested_name(event.call), None, sentence_for(error))

    def fail_delegation(self, state: HookSession, event: HookEvent) -> None:
        """Record that a sub-agent was not started or did not finish."""
        refused = state.calls.get(event.call)
        if refused is not None and refused.denied and refused.denied in event.error:
            return  # our own refusal, reported back
        try:
            offered = self._offered_by(state, event)
        except (GrantError, HandoffError) as error:
            self._writer.write_unlet(state, self.root(state), f"call-{event.call}", event.error, sentence_for(error))
            return
        track = None if offered.child is None else state.runs.get(offered.child)
        if track is not None and track.open:
            how = "interrupted" if event.interrupted else "failed"
            self._writer.end(state, track, Outcome.FAILED, error=how, message=event.error)
        elif not offered.ended:
            self._writer.cancel(state, offered, event.error or _NOBODY)

    def _offered_by(self, state: HookSession, event: HookEvent) -> OfferedByCall:
        """Return the offer of a call; it is made now if the call was not seen before. Raises as an offer does."""
        known = state.offer_of(event.call)
        return known or self._writer.offer(state, self.run(state, event), _delegation(event, late=True))[0]

    def answer(self, state: HookSession, event: HookEvent) -> None:
        """Record the answer of the main conversation, and outcomes of its calls that no hook reported."""
        if state.root is None:
            return
        self.settle(state, state.root, event)
        if event.said is not None and event.said.strip() and event.said != state.said:
            self._writer.write_said(state, state.root, event.said, event.prompt_id)

    def end(self, state: HookSession, event: HookEvent) -> None:
        """Record the end of a session: first everything unfinished, latest first."""
        if state.root is None:
            return
        for track in reversed(state.runs.values()):
            if track.open:
                self.settle(state, track, event)
            if track.open and track is not state.root:
                self._writer.end(state, track, Outcome.FAILED)
        for offered in list(state.open_offers()):
            self._writer.cancel(state, offered, _NOBODY)
        self._writer.end(state, state.root, Outcome.COMPLETED, report=state.said, status=event.reason)

    def settle(self, state: HookSession, track: Track, event: HookEvent) -> None:
        """Record outcomes from the transcript for calls whose end no hook reported."""
        calls = state.open_calls(track.id)
        offers = {offer.call: offer for offer in state.open_offers() if offer.call and offer.parent == track.id}
        for name, result in find_outcomes(transcript_of(event, track.agent), {*calls, *offers}).items():
            if result.unknown:
                continue
            if name in offers:
                if not result.ok:
                    self._writer.cancel(state, offers[name], result.text or _NOBODY)
            else:
                self._settle(state, name, calls[name], result)

    def run(self, state: HookSession, event: HookEvent) -> Track:
        """Return the run of an event; the first event of a sub-agent decides which offer it took."""
        root = self.root(state)
        if event.agent is None:
            return root
        known = state.run_of(event.agent)
        if known is not None:
            return known
        if event.agent in state.agents:
            return self._go_on(state, event, event.agent)
        link = find_link(state, event)
        offered = link.offered or self._offer_late(state, event, link)
        return self._writer.accept(state, offered, event.agent, link.how, link.candidates)

    def _go_on(self, state: HookSession, event: HookEvent, agent: str) -> Track:
        """Start another run for a sub-agent that had ended and was addressed again."""
        before = state.runs[state.agents[agent]]
        parent = state.runs.get(before.working.run.parent or before.id, self.root(state))
        known = next(offer for offer in state.offers.values() if offer.child == before.id)
        asked = Delegation(
            call=known.call,
            task=None,
            kind=event.agent_type or known.kind,
            usual=DIALECTS[event.coder].usual,
            again=True,
        )
        offered, _ = self._writer.offer(state, parent if parent.open else self.root(state), asked)
        return self._writer.accept(state, offered, agent, before.link or LinkedBy.INFERRED, before.candidates)

    def _offer_late(self, state: HookSession, event: HookEvent, link: OfferLink) -> OfferedByCall:
        """Record the offer of a sub-agent whose call nobody saw: it started before the recording."""
        above = state.run_of(event.parent if link.meta is None else link.meta.parent)
        asked = Delegation(
            call=None if link.meta is None else link.meta.call,
            task=event.prompt or read_first_words(transcript_of(event, event.agent)),
            kind=event.agent_type,
            usual=DIALECTS[event.coder].usual,
            late=True,
        )
        return self._writer.offer(state, above or self.root(state), asked)[0]

    def _take(self, state: HookSession, offered: OfferedByCall, agent: str) -> None:
        """Let a sub-agent take the offer that the call's result names."""
        if agent not in state.agents:
            self._writer.accept(state, offered, agent, LinkedBy.RESULT)
            return
        taken = next((known for known in state.offers.values() if known.child == state.agents[agent]), None)
        if taken is not None and taken.call != offered.call:
            self._writer.contradict(state, offered, agent, taken.handoff)
        self._writer.cancel(state, offered, f"sub-agent {agent} was taken for another call's")

    def _settle(self, state: HookSession, name: str, made: MadeCall, result: ToolResult) -> None:
        # The end of a transcript has only the name of the call.
        event = HookEvent(name="PostToolUse", session=state.session, coder=state.coder, tool=made.tool, call=name)
        if result.ok:
            with suppress(CallError, CallOutcomeError):  # it is on record, and nobody waits for it
                self._writer.complete(state, made, event, result.text, seen=ChangesFound(flags=(UNSEEN,)))
        else:
            self._writer.fail(state, made, event, result.text, error=result.denied or "failed")
        self._changing.forget([made.id])

    def _end(self, state: HookSession, track: Track, report: str | None) -> None:
        if report is not None and report.strip():
            self._writer.end(state, track, Outcome.COMPLETED, report=report)
        else:
            self._writer.end(state, track, Outcome.FAILED)


def _repeated(denied: str) -> str:
    """Return the sentence for a repeated refusal: as before, or from the recorded reason."""
    return denied if denied.startswith(TOLD) else not_made(denied)


def _names(state: HookSession, prompt_id: str) -> list[str]:
    return [name for name in state.prompts if name.partition("/")[0] == prompt_id]


def _delegation(event: HookEvent, *, late: bool = False) -> Delegation:
    form = event.form
    prompt = None if form is None or form.task is None else event.input.get(form.task)
    kind = None if form is None or form.sub_agent is None else event.input.get(form.sub_agent)
    return Delegation(
        call=event.call,
        task=readable(prompt) if isinstance(prompt, str) else None,
        kind=readable(kind) if isinstance(kind, str) and kind.strip() else None,
        usual=DIALECTS[event.coder].usual,
        late=late,
        fixed=not DIALECTS[event.coder].changes_prompts,
        inferred=event.inferred,
        message=find_message(transcript_of(event, event.agent), event.call, or_last=not late),
    )
