"""Handing on: a call that starts a sub-agent is an offer, its start the acceptance, its stop the close-out."""

from dataclasses import dataclass, replace

from batonpass.adapters.claude_code.hooks.holding import asked_for, held, table_of
from batonpass.adapters.claude_code.hooks.pen import Pen
from batonpass.adapters.claude_code.hooks.state import Offered, SessionState, Track
from batonpass.adapters.claude_code.sources import PROGRAM
from batonpass.adapters.claude_code.telling import NOT_THERE, as_agent, as_code, within_limit
from batonpass.briefing.render import attach
from batonpass.errors import BudgetExhaustedError, GrantError, OfferedAlreadyError
from batonpass.guard.completeness import required_parts
from batonpass.handoff.bounds import TERMS, Bounds
from batonpass.handoff.calls.limits import revocations, revoked
from batonpass.handoff.holding import Holding, ref_of
from batonpass.handoff.starting import find_statements
from batonpass.handoff.transfer.accept import examine
from batonpass.handoff.transfer.certificate import binding_of, read_above
from batonpass.handoff.transfer.grant_terms import WOULD_DENY, kept, terms_of_offer
from batonpass.handoff.transfer.offer import ABRIDGED
from batonpass.handoff.transfer.read_offer import read_items, read_offer, read_words
from batonpass.ledger.standing import TRIED_OUT, Acceptance, close_out
from batonpass.model.baton import Brief, missing_parts
from batonpass.model.bodies import (
    Body,
    ChildHead,
    HandoffCancelled,
    HandoffInitiated,
    Outcome,
    Part,
    Relation,
    RunRecorded,
    RunRelaxed,
)
from batonpass.model.charge import whole_of
from batonpass.model.grant import Signed, Terms
from batonpass.model.ids import AgentId, Digest, HandoffId, PrincipalId, RunId, StreamId, new_handoff_id
from batonpass.model.items import Item
from batonpass.model.lifecycle import WAITING, Carrier
from batonpass.model.receipt import Mode
from batonpass.model.run import Handoff
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

# Which sub-agent the program takes if a call names none.
USUAL: str = "general-purpose"

PROMPT: str = "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """What a call asks a sub-agent to do."""

    call: str | None
    task: str | None
    kind: str | None = None
    late: bool = False  # it was made before anybody knew
    again: bool = False  # to somebody who had come to an end


class Delegating(Pen):
    """Writes who handed what to whom."""

    def offer(self, state: SessionState, parent: Track, asked: Delegation) -> tuple[Offered, str | None]:
        """Write an offer with its exact task and all that travels with it; return the prompt if that adds to it.

        Raises `GrantError` if its sender has a grant, and cannot give any of it.
        """
        bounds = held(self.desk, parent).bounds
        with self.desk.store.view() as view:
            statements = tuple(find_statements(view, parent.working.run.root, {}))
            holding = _holding(view, parent, bounds)
        carried = holding.carried()
        task = within_limit(asked.task) if asked.task is not None and asked.task.strip() else NOT_THERE
        prompt = None if asked.late or asked.task is None else attach(task, carried)
        items = (*statements, *carried)
        relation = Relation.LEAD_TO_WORKER
        missing = missing_parts(relation, Brief(), items, required_parts(relation, self.desk.policy))
        to = as_agent(asked.kind or USUAL)
        handoff = new_handoff_id(self.desk.clock.now())
        terms, flags = self._terms(holding, to, handoff)
        name = f"{asked.call}/{len(state.offers)}" if asked.again or asked.call is None else asked.call
        body = HandoffInitiated(
            handoff=handoff,
            run=parent.id,
            to=to,
            carrier=Carrier.CALLER,
            state=WAITING[Carrier.CALLER],
            scope=holding.scope,
            key=self.digest(parent, b"key", name.encode()),
            fingerprint=self.digest(parent, b"offer", name.encode(), to.encode(), task.encode()),
            carries=tuple(map(ref_of, items)),
            missing=(*missing, ABRIDGED) if holding.is_abridged() else missing,
            flags=flags,
            terms=None if terms is None else terms.digest,
        )
        source = self.source(state, key=asked.call, type=asked.kind, late=asked.late or None, again=asked.again or None)
        contents = [self.desk.text("task", task), source]
        if prompt is not None:
            contents.append(self.desk.text(PROMPT, prompt))
        if terms is not None:
            contents.append(kept(self.desk, TERMS, terms))
        try:
            held_to = bounds.chain and not bounds.tried_out
            self.record(parent, body, *contents, within=revocations(bounds.line) if held_to else ())
        except BudgetExhaustedError as refused:
            raise revoked(bounds, whole_of(refused.account)) from None
        except OfferedAlreadyError as known:
            # Told twice, and recorded by a process that is gone: it stands as it was offered then.
            return self._known(state, HandoffId(known.handoff), asked)
        offered = Offered(handoff=body.handoff, parent=parent.id, to=to, call=asked.call, kind=asked.kind)
        state.offers[body.handoff] = offered
        return offered, prompt

    def _terms(self, holding: Holding, to: AgentId, handoff: HandoffId) -> tuple[Signed[Terms] | None, tuple[str, ...]]:
        """Return what a sub-agent is granted, and what is to be told of a grant that is only tried out."""
        mode, bounds = holding.working.mode, holding.bounds
        tried_out = (TRIED_OUT,) if bounds.tried_out else ()
        try:
            table = table_of(self._tables, to, mode, self.desk.clock.now())
            asked = asked_for(bounds, mode, table, (holding.agent, to))
            return terms_of_offer(self.desk, holding, asked, to=to, handoff=handoff, deadline=None), tried_out
        except GrantError:
            if not tried_out:
                raise
            return None, (*tried_out, WOULD_DENY)

    def read_prompt(self, offered: Offered) -> str | None:
        """Return the prompt with which an offer was made, if it adds to the task."""
        with self.desk.store.view() as view:
            known = view.get_handoff(offered.handoff)
            ref = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload).content.get(PROMPT)
            return None if ref is None else read_words(view, ref)

    def accept(self, state: SessionState, offered: Offered, agent: str, link: str, candidates: int = 1) -> Track:
        """Write that a sub-agent took an offer, and how that is known."""
        examined = examine(self.desk, offered.handoff)
        root = state.runs[offered.parent].working
        with self.desk.store.view() as view:
            known = examined.offer.handoff
            receipt = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload)
        terms, above = read_above(self.desk, examined.offer, receipt)
        working = self.desk.recording.accept(
            offered.handoff,
            mode=self._mode if terms is None or TRIED_OUT in examined.offer.initiated.flags else Mode.ENFORCED,
            session=root.session,
            acceptance=Acceptance(
                baton=examined.offer.revision,
                problems=tuple(dict.fromkeys(problem.check for problem in examined.problems)),
                # Nobody can ask whoever works in another program: it goes on, and would have asked.
                would_ask=(examined.asking.would_ask or examined.asking.question) is not None,
            ),
            contents=(
                self.source(
                    state,
                    key=agent,
                    subagent=agent,
                    link=link,
                    candidates=candidates if candidates > 1 else None,
                ),
            ),
            granting=binding_of(self.desk, examined.offer, terms, None, above),
        )
        track = Track(working=replace(working, epoch=None), agent=agent, link=link, candidates=candidates)
        state.add(track)
        offered.child = track.id
        return track

    def end(
        self,
        state: SessionState,
        track: Track,
        outcome: Outcome,
        *,
        report: str | None = None,
        error: str = "unfinished",
        message: str | None = None,
        status: str | None = None,
    ) -> None:
        """Write the last receipt of a run: what it gave back, what it changed, and what became of those below it."""
        contents = [self.source(state, key=f"end/{track.agent or state.session}", status=status)]
        if report is not None and report.strip():
            contents.append(self.desk.text("report", within_limit(report)))
        if message is not None and message.strip():
            contents.append(self.desk.text("message", within_limit(message)))
        own = [offer for offer in state.offers.values() if offer.parent == track.id]
        body = close_out(
            track.working.run,
            outcome,
            self.desk.recording.children(track.id),
            effects=tuple(track.effects),
            unverified=tuple(offer.handoff for offer in own if offer.completed),
            error=None if outcome is Outcome.COMPLETED else as_code(f"{PROGRAM}.{error}"),
        )
        self.desk.recording.end(track.working, body, tuple(contents))
        track.open = False
        for offer in state.offers.values():
            if offer.child == track.id:
                offer.ended = True
                offer.completed = outcome is Outcome.COMPLETED

    def cancel(self, state: SessionState, offered: Offered, reason: str) -> None:
        """Write that an offer came to nothing, and why."""
        by = PrincipalId(f"agent:{PROGRAM}")

        def cancelled(_: Handoff, ended: ChildHead | None) -> Body:
            return HandoffCancelled(handoff=offered.handoff, by=by, ended=ended)

        contents = (self.desk.text("reason", within_limit(reason)), self.source(state, key=offered.call))
        self.desk.recording.act(offered.handoff, cancelled, contents)
        offered.ended = True

    def contradict(self, state: SessionState, offered: Offered, agent: str, taken: Digest | HandoffId) -> None:
        """Write that a sub-agent was started by another call than was inferred."""
        parent = state.runs[offered.parent]
        body = RunRecorded(run=parent.id, by=PrincipalId(f"agent:{PROGRAM}"), items=())
        source = self.source(state, key=offered.call, subagent=agent, link="result", instead=taken)
        self.record(parent, body, source)

    def _known(self, state: SessionState, handoff: HandoffId, asked: Delegation) -> tuple[Offered, str | None]:
        with self.desk.store.view() as view:
            known = view.get_handoff(handoff)
        offered = Offered(
            handoff=handoff,
            parent=known.parent,
            to=AgentId(known.to),
            call=asked.call,
            kind=asked.kind,
            child=known.run,
        )
        state.offers[handoff] = offered
        return offered, self.read_prompt(offered)


def _holding(view: LedgerView, track: Track, bounds: Bounds) -> Holding:
    """Return what a run knows: what came to it, and what was recorded in it since."""
    run = track.working.run
    holding = Holding(working=track.working, bounds=bounds)
    if run.handoff is not None:
        offer = read_offer(view, view.get_handoff(run.handoff))
        holding.add(*(item for item in offer.baton.items if item.part is not Part.INTENT))
    holding.add(*_noted(view, run.id))
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run.id), kind="run.relaxed")):
        body = decode_receipt(stored.payload).body
        if isinstance(body, RunRelaxed):
            holding.relaxed.add(body.item)
    return holding


def _noted(view: LedgerView, run: RunId) -> tuple[Item, ...]:
    refs = [
        item
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind="run.recorded"))
        if isinstance(body := decode_receipt(stored.payload).body, RunRecorded)
        for item in body.items
        if item.part is not Part.INTENT
    ]
    contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])} if refs else {}
    return read_items(view, refs, contents)[0]
