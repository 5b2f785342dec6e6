"""Records delegation: a call that starts a sub-agent is an offer, its start the acceptance, its stop the close-out."""

import json
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.coders.session.agent_definition import find_makeup
from batonpass.adapters.coders.session.hook_session import HookSession, OfferedByCall, Track
from batonpass.adapters.coders.session.session_writer import SessionWriter
from batonpass.adapters.importer.receipt_words import NOT_THERE, as_code, within_limit
from batonpass.briefing.render import attach
from batonpass.errors import HandoffEndedError, HandoffHeldError
from batonpass.handoff.grants.policy_tables import whole_grant
from batonpass.handoff.history.offers import read_items, read_words
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.transfer.accept import accept
from batonpass.handoff.transfer.close import cancel_handoff, close_run
from batonpass.handoff.transfer.free_text import without_suspect
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.handoff.transfer.result import learn_own
from batonpass.model.base.content_names import CONFIG, REPORT
from batonpass.model.base.ids import AgentId, Digest, HandoffId, PrincipalId, StreamId, as_agent
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Outcome, Part, RunRecorded, RunRelaxed
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought
from batonpass.model.ledger.content import Content
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

PROMPT: str = "prompt"


class Delegation(Struct, frozen=True, kw_only=True):
    """A call that asks a sub-agent to do something."""

    call: str | None
    task: str | None
    kind: str | None = None
    usual: str = "general-purpose"  # the type that the agent uses if a call names none
    late: bool = False  # the sub-agent started before we knew of the call
    again: bool = False  # to a sub-agent that had ended
    fixed: bool = False  # the agent takes no other prompt for it
    inferred: bool = False  # the id of the call was made up by us
    message: ReasoningPlace | None = None  # the place of the model's message in the transcript


class Delegating(SessionWriter):
    """Records handoffs to sub-agents."""

    def offer(self, state: HookSession, parent: Track, asked: Delegation) -> tuple[OfferedByCall, str | None]:
        """Record an offer with its exact task and context; return the prompt if that adds context to the task.

        Raises `GrantError` or `HandoffError` if it is denied or held; that is recorded.
        """
        holding, to = parent.holding, as_agent(asked.kind or asked.usual)
        self._learn_noted(parent)
        task = within_limit(asked.task) if asked.task is not None and asked.task.strip() else NOT_THERE
        prompt = None
        if not asked.late and not asked.fixed and asked.task is not None:
            # A prompt is read as instructions, so words that look injected are not added to it.
            prompt = attach(task, without_suspect(self.desk, holding, holding.carried()))
        if (waited := self._find_waited(state, parent, to, task)) is not None:
            waited.call, waited.held = asked.call, None  # an approved offer is used once
            return waited, self.read_prompt(waited)
        name = f"{asked.call}/{len(state.offers)}" if asked.again or asked.call is None else asked.call
        # It was denied before and started anyway: the source says so.
        before = state.calls.get(asked.call or "") if asked.late else None
        refused = before is not None and before.denied is not None
        source = self.source(
            state,
            key=asked.call,
            type=asked.kind,
            late=asked.late or None,
            again=asked.again or None,
            refused=refused or None,
            inferred=asked.inferred or None,
        )
        made = offer_task(
            self.desk,
            holding,
            OfferRequest(
                to=to,
                task=task,
                key=name,
                grant=whole_grant(self.desk, holding, to),
                thought=None if asked.message is None else Thought(place=asked.message),
            ),
            beside=(source,) if prompt is None else (source, self.desk.text(PROMPT, prompt)),
        )
        known = made.handoff
        offered = OfferedByCall(
            handoff=known.id,
            parent=parent.id,
            to=AgentId(known.to),
            call=asked.call,
            kind=asked.kind,
            child=known.run,
            task=asked.task,
        )
        state.offers[known.id] = offered
        # A repeated event that an earlier process recorded: the prompt is the one offered then.
        told = self.read_prompt(offered) if made.again else prompt
        if known.state is State.HELD:
            offered.held = task
            raise HandoffHeldError(known.id)
        return offered, told

    def _learn_noted(self, track: Track) -> None:
        """Read items and releases that others added to a run's stream meanwhile."""
        stream = StreamId(track.id)
        with self.desk.store.view() as view:
            found = (
                *view.find_receipts(ReceiptQuery(stream=stream, kind="run.recorded")),
                *view.find_receipts(ReceiptQuery(stream=stream, kind="run.relaxed")),
            )
            bodies = [decode_receipt(stored.payload).body for stored in found]
            refs = [
                item
                for body in bodies
                if isinstance(body, RunRecorded)
                for item in body.items
                if item.part is not Part.INTENT and item.item not in track.holding.notes
            ]
            contents = (
                {content.id: content for content in view.find_contents([ref.item for ref in refs])} if refs else {}
            )
            track.holding.add(*read_items(view, refs, contents)[0])
        track.holding.relaxed.update(body.item for body in bodies if isinstance(body, RunRelaxed))

    def _find_waited(self, state: HookSession, parent: Track, to: AgentId, task: str) -> OfferedByCall | None:
        """Return a held offer of the same task that was approved: the model asks for it again.

        Raises `HandoffHeldError` while it waits.
        """
        for offered in state.offers.values():
            if offered.held == task and (offered.to, offered.parent) == (to, parent.id) and offered.child is None:
                with self.desk.store.view() as view:
                    known = view.get_handoff(offered.handoff)
                if known.state is State.HELD:
                    raise HandoffHeldError(known.id)
                if known.state is State.OFFERED:
                    return offered
        return None

    def require_startable(self, offered: OfferedByCall) -> None:
        """Refuse to start a sub-agent whose offer is held, denied or cancelled. Raises `HandoffError`."""
        with self.desk.store.view() as view:
            known = view.get_handoff(offered.handoff)
        if known.state is State.HELD:
            raise HandoffHeldError(known.id)
        if known.state in {State.DENIED, State.CANCELLED, State.EXPIRED}:
            raise HandoffEndedError(known.id, known.state)

    def read_prompt(self, offered: OfferedByCall) -> str | None:
        """Return the prompt of an offer, if it adds context to the task."""
        with self.desk.store.view() as view:
            known = view.get_handoff(offered.handoff)
            ref = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload).content.get(PROMPT)
            return None if ref is None else read_words(view, ref)

    def accept(self, state: HookSession, offered: OfferedByCall, agent: str, link: str, candidates: int = 1) -> Track:
        """Record that a sub-agent took an offer, and how that is known."""
        many = candidates if candidates > 1 else None
        source = self.source(state, key=agent, subagent=agent, link=link, candidates=many)
        # The sub-agent runs in another program and cannot ask: it continues, and `would_ask` is recorded.
        holding = accept(self.desk, offered.handoff, asks=False, beside=(source, *self._makeup(state, offered)))
        holding.working = replace(holding.working, epoch=None)
        holding.stays_open = True
        if state.root is not None:
            holding.denied_before = state.root.holding.denied_before
        track = Track(holding=holding, agent=agent, kind=offered.kind, link=link, candidates=candidates)
        state.add(track)
        offered.child = track.id
        return track

    def _makeup(self, state: HookSession, offered: OfferedByCall) -> Iterator[Content]:
        made_of = find_makeup(state.coder, offered.kind, self.desk.work_tree)
        if made_of:
            yield self.desk.text(CONFIG, json.dumps(made_of, sort_keys=True))

    def end(
        self,
        state: HookSession,
        track: Track,
        outcome: Outcome,
        *,
        report: str | None = None,
        error: str = "unfinished",
        message: str | None = None,
        status: str | None = None,
    ) -> None:
        """Record the end of a run: its result, its changes, and the state of its children."""
        beside = [self.source(state, key=f"end/{track.agent or state.session}", status=status)]
        if report is not None and report.strip():
            beside.append(self.desk.text(REPORT, within_limit(report)))
        fault = Fault(as_code(f"{state.coder}.{error}"), within_limit(message or "").strip())
        close_run(
            self.desk,
            track.holding,
            outcome,
            error=None if outcome is Outcome.COMPLETED else fault,
            over=True,
            beside=tuple(beside),
        )
        track.open = False
        for offer in state.offers.values():
            if offer.child == track.id:
                offer.ended = True
                offer.completed = outcome is Outcome.COMPLETED
                if (parent := state.runs.get(offer.parent)) is not None and parent.open:
                    learn_own(self.desk, parent.holding, track.holding)

    def cancel(self, state: HookSession, offered: OfferedByCall, reason: str) -> None:
        """Record that an offer was not taken, and why."""
        source = self.source(state, key=offered.call)
        by = f"agent:{state.coder}"
        cancel_handoff(self.desk, offered.handoff, by=by, reason=within_limit(reason), beside=(source,))
        offered.ended = True

    def contradict(self, state: HookSession, offered: OfferedByCall, agent: str, taken: Digest | HandoffId) -> None:
        """Record that a sub-agent was started by another call than was inferred."""
        parent = state.runs[offered.parent]
        body = RunRecorded(run=parent.id, by=PrincipalId(f"agent:{state.coder}"), items=())
        source = self.source(state, key=offered.call, subagent=agent, link="result", instead=taken)
        self.record(parent, body, source)
