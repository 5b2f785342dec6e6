"""Handing on: a call that starts a sub-agent is an offer, its start the acceptance, its stop the close-out."""

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.hooks.session.pen import Pen
from batonpass.adapters.claude_code.hooks.session.state import HookSession, OfferedByCall, Track
from batonpass.adapters.claude_code.importer.import_sources import PROGRAM
from batonpass.adapters.claude_code.importer.receipt_words import NOT_THERE, as_agent, as_code, within_limit
from batonpass.briefing.render import attach
from batonpass.errors import HandoffEndedError, HandoffHeldError
from batonpass.handoff.history.offers import read_items, read_words
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.accept import accept
from batonpass.handoff.transfer.close import cancel_handoff, close_run
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.handoff.transfer.result import learn_own
from batonpass.model.base.ids import AgentId, Digest, HandoffId, PrincipalId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Outcome, Part, RunRecorded, RunRelaxed
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought
from batonpass.model.grants.grant import Grant
from batonpass.model.ledger.content import Content
from batonpass.store.port import ReceiptQuery
from batonpass.wire.codec import decode_receipt


def grant_of_sub_agent(desk: Desk, holding: Holding, to: AgentId) -> Grant | None:
    """Return what a sub-agent is asked for: all that its sender may give, unless a table of the file says less.

    None where the table decides, where nobody is held to a grant, and where there is nothing to give: then the offer
    is refused as any other.
    """
    chain = holding.bounds.chain
    if not chain or to in desk.gates.grants:
        return None
    above = chain[-1].said.may_delegate
    return Grant(may=above, may_delegate=above) if above else None


# Which sub-agent the program takes if a call names none.
USUAL: str = "general-purpose"

PROMPT: str = "prompt"


class Delegation(Struct, frozen=True, kw_only=True):
    """What a call asks a sub-agent to do."""

    call: str | None
    task: str | None
    kind: str | None = None
    late: bool = False  # it was made before anybody knew
    again: bool = False  # to somebody who had come to an end
    message: ReasoningPlace | None = None  # where the transcript has the message that asks for it


class Delegating(Pen):
    """Writes who handed what to whom."""

    def offer(self, state: HookSession, parent: Track, asked: Delegation) -> tuple[OfferedByCall, str | None]:
        """Write an offer with its exact task and all that travels with it; return the prompt if that adds to it.

        Raises `GrantError` and `HandoffError` if it is not to be made, or waits for somebody; that is on record then.
        """
        holding, to = parent.holding, as_agent(asked.kind or USUAL)
        self._learn_noted(parent)
        task = within_limit(asked.task) if asked.task is not None and asked.task.strip() else NOT_THERE
        prompt = None if asked.late or asked.task is None else attach(task, holding.carried())
        if (waited := self._find_waited(state, parent, to, task)) is not None:
            waited.call, waited.held = asked.call, None  # what was let begin begins once
            return waited, self.read_prompt(waited)
        name = f"{asked.call}/{len(state.offers)}" if asked.again or asked.call is None else asked.call
        # Started all the same: the denial stands before it, and this says that it was.
        before = state.calls.get(asked.call or "") if asked.late else None
        refused = before is not None and before.denied is not None
        source = self.source(
            state,
            key=asked.call,
            type=asked.kind,
            late=asked.late or None,
            again=asked.again or None,
            refused=refused or None,
        )
        made = offer_task(
            self.desk,
            holding,
            OfferRequest(
                to=to,
                task=task,
                key=name,
                grant=grant_of_sub_agent(self.desk, holding, to),
                thought=None if asked.message is None else Thought(place=asked.message),
            ),
            beside=(source, *self._prompted(prompt)),
        )
        known = made.handoff
        offered = OfferedByCall(
            handoff=known.id, parent=parent.id, to=AgentId(known.to), call=asked.call, kind=asked.kind, child=known.run
        )
        state.offers[known.id] = offered
        # Told twice, and recorded by a process that is gone: it stands as it was offered then.
        told = self.read_prompt(offered) if made.again else prompt
        if known.state is State.HELD:
            offered.held = task
            raise HandoffHeldError(known.id)
        return offered, told

    def _learn_noted(self, track: Track) -> None:
        """Take in what others wrote into a run's stream meanwhile: items, and what it is released from."""
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
        """Return an offer of the same task that was held, if somebody let it go on: the model asks for it once more.

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
        """Refuse to start whoever was offered something that waits, or that somebody refused. Raises `HandoffError`."""
        with self.desk.store.view() as view:
            known = view.get_handoff(offered.handoff)
        if known.state is State.HELD:
            raise HandoffHeldError(known.id)
        if known.state in {State.DENIED, State.CANCELLED, State.EXPIRED}:
            raise HandoffEndedError(known.id, known.state)

    def _prompted(self, prompt: str | None) -> tuple[Content, ...]:
        return () if prompt is None else (self.desk.text(PROMPT, prompt),)

    def read_prompt(self, offered: OfferedByCall) -> str | None:
        """Return the prompt with which an offer was made, if it adds to the task."""
        with self.desk.store.view() as view:
            known = view.get_handoff(offered.handoff)
            ref = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload).content.get(PROMPT)
            return None if ref is None else read_words(view, ref)

    def accept(self, state: HookSession, offered: OfferedByCall, agent: str, link: str, candidates: int = 1) -> Track:
        """Write that a sub-agent took an offer, and how that is known."""
        many = candidates if candidates > 1 else None
        source = self.source(state, key=agent, subagent=agent, link=link, candidates=many)
        # Nobody can ask whoever works in another program: it goes on, and would have asked.
        holding = accept(self.desk, offered.handoff, asks=False, beside=(source,))
        holding.working = replace(holding.working, epoch=None)
        holding.stays_open = True
        if state.root is not None:
            holding.denied_before = state.root.holding.denied_before
        track = Track(holding=holding, agent=agent, kind=offered.kind, link=link, candidates=candidates)
        state.add(track)
        offered.child = track.id
        return track

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
        """Write the last receipt of a run: what it gave back, what it changed, and what became of those below it."""
        beside = [self.source(state, key=f"end/{track.agent or state.session}", status=status)]
        if report is not None and report.strip():
            beside.append(self.desk.text("report", within_limit(report)))
        fault = Fault(as_code(f"{PROGRAM}.{error}"), within_limit(message or "").strip())
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
        """Write that an offer came to nothing, and why."""
        source = self.source(state, key=offered.call)
        by = f"agent:{PROGRAM}"
        cancel_handoff(self.desk, offered.handoff, by=by, reason=within_limit(reason), beside=(source,))
        offered.ended = True

    def contradict(self, state: HookSession, offered: OfferedByCall, agent: str, taken: Digest | HandoffId) -> None:
        """Write that a sub-agent was started by another call than was inferred."""
        parent = state.runs[offered.parent]
        body = RunRecorded(run=parent.id, by=PrincipalId(f"agent:{PROGRAM}"), items=())
        source = self.source(state, key=offered.call, subagent=agent, link="result", instead=taken)
        self.record(parent, body, source)
