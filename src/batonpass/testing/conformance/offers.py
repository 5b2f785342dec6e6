"""Offers: keys, deadlines, series, replacements and statements of intent."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    DuplicateReceiptError,
    IllegalTransitionError,
    NotFoundError,
    OfferedAlreadyError,
    PremiseError,
    StaleHeadError,
)
from batonpass.ledger.position import Working, need
from batonpass.model.base.ids import AgentId, Digest, HandoffId, RunId, StreamId, new_handoff_id
from batonpass.model.base.lifecycle import WAITING, Carrier, State
from batonpass.model.bodies.body import (
    Carried,
    ChildHead,
    HandoffApproved,
    HandoffCancelled,
    HandoffExpired,
    HandoffHeld,
    HandoffInitiated,
    HandoffReplaced,
    Outcome,
    Part,
    RunRecorded,
)
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Premise
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, all_receipts, an_entry, at_once, head_of

KEY = Digest("ab" * 32)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2999, 1, 1, tzinfo=UTC)


def offered(
    scribe: Scribe,
    parent: Working,
    *,
    scope: str | None = None,
    deadline: datetime | None = None,
    carrier: Carrier = Carrier.CALLER,
) -> HandoffId:
    """Offer a task, with the suite's key if a scope is given, or with a deadline."""
    body = HandoffInitiated(
        handoff=new_handoff_id(NOW),
        run=parent.run.id,
        to=AgentId("editor"),
        carrier=carrier,
        state=WAITING[carrier],
        scope=None if scope is None else StreamId(scope),
        key=None if scope is None else KEY,
        fingerprint=None if scope is None else Digest("cd" * 32),
        deadline=deadline,
    )
    scribe.recording.record(parent, body)
    return body.handoff


def _in_order(deadlines: int) -> list[datetime]:
    return [LONG_AGO + timedelta(days=day) for day in range(deadlines)]


class Offering(WithScribe):
    """Offers: keys, deadlines, series, replacements and statements of intent."""

    def test_an_offer_comes_back_as_it_was_made(self, store: LedgerStore, scribe: Scribe) -> None:
        """A handoff keeps the position of its offer, its scope, its key, and its deadline to the microsecond."""
        lead = scribe.start()
        deadline = FAR_AHEAD + timedelta(microseconds=1)
        handoff = offered(scribe, lead, scope=lead.run.id, deadline=deadline)
        with store.view() as view:
            found = view.get_handoff(handoff)
            initiated = view.get_stream(StreamId(lead.run.id))

        assert (initiated.head, 2) == (found.initiated, found.seq)
        assert (StreamId(lead.run.id), KEY, deadline) == (found.scope, found.key, found.deadline)

    def test_an_offer_is_found_by_its_key(self, store: LedgerStore, scribe: Scribe) -> None:
        """Scope and key name one handoff; a key in another scope is unknown."""
        lead = scribe.start()
        handoff = offered(scribe, lead, scope=lead.run.id)
        with store.view() as view:
            assert handoff == view.get_offer(StreamId(lead.run.id), KEY).id
            with pytest.raises(NotFoundError):
                view.get_offer(StreamId(handoff), KEY)

    def test_a_key_is_offered_once_in_its_scope(self, store: LedgerStore, scribe: Scribe) -> None:
        """A second offer under a key is refused, and the error names the first; nothing is written."""
        first, second = scribe.start(), scribe.start()
        handoff = offered(scribe, first, scope=first.run.id)
        before = len(all_receipts(store))

        with pytest.raises(OfferedAlreadyError) as refused:
            offered(scribe, second, scope=first.run.id)

        assert handoff == refused.value.handoff
        assert (before, 1) == (len(all_receipts(store)), head_of(store, second).seq)

    def test_the_same_key_in_another_scope_is_another_offer(self, store: LedgerStore, scribe: Scribe) -> None:
        """Scopes do not share keys, and offers without a key never collide."""
        lead = scribe.start()
        for scope in (None, None, lead.run.id, scribe.offer(lead)):
            offered(scribe, lead, scope=scope)

        with store.view() as view:
            assert 5 == len(list(view.find_handoffs(parent=lead.run.id)))

    def test_racing_offers_under_one_key_have_one_winner(self, store: LedgerStore, scribe: Scribe) -> None:
        """Of many offers under one key at once exactly one succeeds, and the others get its id."""
        leads = [scribe.start() for _ in range(6)]
        won: list[HandoffId] = []
        named: list[str] = []

        def offer(lead: Working) -> None:
            try:
                won.append(offered(scribe, lead, scope=leads[0].run.id))
            except OfferedAlreadyError as error:
                with store.view() as view:  # the handoff in the error exists already
                    named.append(view.get_handoff(HandoffId(error.handoff)).id)

        at_once(offer, leads)

        assert 1 == len(won)
        assert won * 5 == named

    def test_a_handoff_is_opened_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """A handoff's id is used only once, even with the same key."""
        lead = scribe.start()
        handoff = offered(scribe, lead, scope=lead.run.id)
        with store.view() as view:
            known = view.get_handoff(handoff)
        again = HandoffInitiated(
            handoff=handoff,
            run=lead.run.id,
            to=known.to,
            carrier=known.carrier,
            state=known.state,
            scope=known.scope,
            key=known.key,
            fingerprint=KEY,
        )

        with pytest.raises(DuplicateReceiptError):
            scribe.recording.record(lead, again)

    def test_handoffs_are_found_by_their_parent(self, store: LedgerStore, scribe: Scribe) -> None:
        """A run's own handoffs are found among those of its tree, the latest first."""
        lead = scribe.start()
        editor = scribe.delegate(lead)
        mine = [scribe.offer(editor, agent) for agent in ("painter", "printer")]
        with store.view() as view:
            found = [handoff.id for handoff in view.find_handoffs(parent=editor.run.id)]
            narrowed = list(view.find_handoffs(parent=editor.run.id, root=lead.run.root))
            elsewhere = list(view.find_handoffs(parent=editor.run.id, root=RunId("run_" + "0" * 26)))

        assert sorted(mine, reverse=True) == found
        assert (2, []) == (len(narrowed), elsewhere)

    def test_a_series_comes_latest_first(self, store: LedgerStore, scribe: Scribe) -> None:
        """Roots that follow each other under a name are found by it; the latest is the one to continue."""
        series = [
            scribe.recording.start("again", agent=agent, by=ANA, series="nightly").run
            for agent in ("lead", "boss", "lead")
        ]
        scribe.recording.start("other", agent="lead", by=ANA, series="weekly")
        scribe.start()
        with store.view() as view:
            found = list(view.find_runs(series="nightly"))
            narrowed = list(view.find_runs(series="nightly", agent=AgentId("boss"), root=series[1].id))
            children = list(view.find_runs(series="nightly", parent=series[0].id))

        assert sorted(series, key=lambda run: run.id, reverse=True) == found
        assert ([series[1]], []) == (narrowed, children)

    def test_a_replacement_is_asked_next(self, store: LedgerStore, scribe: Scribe) -> None:
        """After a replacement the handoff waits for another agent; other transitions keep its agent."""
        lead = scribe.start()
        handoff = scribe.offer(lead)
        scribe.recording.close(scribe.recording.accept(handoff), Outcome.FAILED)
        with store.view() as view:
            assert "editor" == view.get_handoff(handoff).to
        scribe.recording.act(handoff, lambda *_: HandoffReplaced(handoff=handoff, by=ANA, to=AgentId("reviewer")))

        with store.view() as view:
            known = view.get_handoff(handoff)
        assert ("reviewer", State.OFFERED) == (known.to, known.state)
        assert "reviewer" == scribe.recording.accept(handoff).run.agent

    def test_a_held_attempt_is_suspended(self, store: LedgerStore, scribe: Scribe) -> None:
        """Holding a running handoff ends its run as suspended; an approval lets it be taken again."""
        handoff = scribe.offer(scribe.start())
        first = scribe.recording.accept(handoff)
        scribe.recording.act(
            handoff,
            lambda known, ended: HandoffHeld(handoff=handoff, attempt=1, ended=need(ended, known), reason="call.held"),
        )
        with store.view() as view:
            states = (view.get_run(first.run.id).state, view.get_handoff(handoff).state)
            held = [known.id for known in view.find_held()]
        scribe.recording.act(handoff, lambda *_: HandoffApproved(handoff=handoff, by=ANA))

        assert (RunState.SUSPENDED, State.HELD) == states
        with store.view() as view:
            assert ([handoff], []) == (held, list(view.find_held()))
        assert 2 == scribe.recording.accept(handoff).run.attempt

    @pytest.mark.parametrize("other", ["an earlier receipt", "another digest"])
    def test_what_ends_an_attempt_names_its_last_receipt(self, store: LedgerStore, scribe: Scribe, other: str) -> None:
        """A worker that only seemed dead has written since, and whatever it wrote would hang from nothing."""
        handoff = scribe.offer(scribe.start())
        child = scribe.recording.accept(handoff)
        earlier = head_of(store, child)
        scribe.recording.request(child, "write_file", "{}")
        at = earlier if other == "an earlier receipt" else replace(head_of(store, child), head=Digest("ab" * 32))
        ended = ChildHead(run=child.run.id, seq=at.seq, head=at.head)

        with pytest.raises(StaleHeadError):
            scribe.recording.act(
                handoff, lambda *_: HandoffHeld(handoff=handoff, attempt=1, ended=ended, reason="call.held")
            )

        with store.view() as view:
            assert State.RUNNING == view.get_handoff(handoff).state

    @pytest.mark.parametrize("running", [True, False])
    def test_an_act_ends_the_run_of_its_handoff(self, store: LedgerStore, scribe: Scribe, running: bool) -> None:  # noqa: FBT001
        """A running handoff cannot end beside its run, and one that nobody took ends nobody's."""
        lead = scribe.start()
        handoff = scribe.offer(lead)
        before = State.OFFERED
        if running:
            scribe.recording.accept(handoff)
            before = State.RUNNING
        theirs = head_of(store, lead)
        ended = None if running else ChildHead(run=lead.run.id, seq=theirs.seq, head=theirs.head)

        with pytest.raises(IllegalTransitionError):
            scribe.recording.act(handoff, lambda *_: HandoffCancelled(handoff=handoff, by=ANA, ended=ended))

        with store.view() as view:
            assert before == view.get_handoff(handoff).state
        assert head_of(store, lead).open

    @pytest.mark.parametrize("attempt", [1, 3])
    def test_an_act_is_about_the_attempt_that_runs(self, store: LedgerStore, scribe: Scribe, attempt: int) -> None:
        """What somebody says about an earlier attempt does not end a later one."""
        handoff = scribe.offer(scribe.start())
        scribe.recording.accept(handoff)
        scribe.recording.take_over(handoff, by=ANA, reason="gone")
        scribe.recording.accept(handoff)

        with pytest.raises(IllegalTransitionError):
            scribe.recording.act(
                handoff,
                lambda known, ended: HandoffHeld(
                    handoff=handoff, attempt=attempt, ended=need(ended, known), reason="call.held"
                ),
            )

        with store.view() as view:
            known = view.get_handoff(handoff)
        assert (State.RUNNING, 2) == (known.state, known.attempt)

    def test_what_is_overdue_comes_oldest_first(self, store: LedgerStore, scribe: Scribe) -> None:
        """By the store's clock, an open handoff past its deadline is overdue, with either carrier."""
        lead = scribe.start()
        first, second, third, fourth = _in_order(4)
        running = offered(scribe, lead, deadline=second)
        child = scribe.recording.accept(running)
        ready = offered(scribe, lead, deadline=first, carrier=Carrier.WORKER)
        waiting = offered(scribe, lead, deadline=third)
        cancelled = offered(scribe, lead, deadline=fourth)
        scribe.recording.cancel(cancelled, by=ANA, reason="enough")
        for deadline in (None, FAR_AHEAD):
            offered(scribe, lead, deadline=deadline)
        with store.view() as view:
            overdue = list(view.find_overdue())
        scribe.recording.act(running, lambda _, ended: HandoffExpired(handoff=running, ended=ended))
        with store.view() as view:
            left = list(view.find_overdue())
            run = view.get_run(child.run.id)

        assert [ready, running, waiting] == [handoff.id for handoff in overdue]
        assert [State.READY, State.RUNNING, State.OFFERED] == [handoff.state for handoff in overdue]
        assert ([ready, waiting], RunState.EXPIRED) == ([handoff.id for handoff in left], run.state)

    def test_what_humans_said_comes_in_order(self, store: LedgerStore, scribe: Scribe) -> None:
        """Statements of intent are kept with their authors, in the order of recording."""
        lead, other = scribe.start("Fix rounding"), scribe.start("Paint it")
        said = [new_content(f"item{number}", f"wish {number}", NOW) for number in range(12)]
        items = tuple(
            Carried(item=content.ref.id, digest=content.ref.digest, part=part)
            for content, part in zip(said, (Part.INTENT, Part.DECISION) * 6, strict=True)
        )
        scribe.recording.record(lead, RunRecorded(run=lead.run.id, by=ANA, items=items), tuple(said))
        with store.view() as view:
            everything = list(view.find_statements())
            mine = list(view.find_statements(lead.run.root))

        assert [lead.run.id, other.run.id, *[lead.run.id] * 6] == [stated.root for stated in everything]
        assert [content.ref.id for content in said[::2]] == [stated.item for stated in mine[1:]]
        assert {(ANA, said[0].ref.digest)} == {(mine[1].by, mine[1].digest)}
        assert [stated for stated in everything if stated.root == lead.run.id] == mine

    def test_a_statement_outlives_its_words(self, store: LedgerStore, scribe: Scribe) -> None:
        """An erased statement keeps its author, its time and its digest."""
        lead = scribe.start("call me on 555-0100")
        with store.view() as view:
            before = list(view.find_statements(lead.run.id))
        scribe.erasure.erase([before[0].item], by=ANA, reason="asked to")

        with store.view() as view:
            assert before == list(view.find_statements(lead.run.id))

    def test_a_statement_is_made_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """An item cannot be stated twice, and nothing of the second try is written."""
        lead = scribe.start()
        with store.view() as view:
            (stated,) = view.find_statements()
        again = Carried(item=stated.item, digest=stated.digest, part=Part.INTENT)

        with pytest.raises(DuplicateReceiptError):
            scribe.recording.record(lead, RunRecorded(run=lead.run.id, by=ANA, items=(again,)))

        assert 1 == head_of(store, lead).seq

    def test_a_premise_has_to_hold(self, store: LedgerStore, scribe: Scribe) -> None:
        """An entry with an outdated premise is refused; only its own tree counts."""
        lead, other = scribe.start("Fix rounding"), scribe.start("Paint it")
        quiet, busy, elsewhere = offered(scribe, lead), offered(scribe, lead), offered(scribe, other)
        holds = Premise(root=lead.run.root, statements=1, untouched=(quiet, busy))
        content = new_content("item1", "to the cent", NOW)
        item = Carried(item=content.ref.id, digest=content.ref.digest, part=Part.INTENT)

        def offer(premise: Premise) -> None:
            store.append([replace(an_entry(scribe, lead, head_of(store, lead)), premise=premise)])

        offer(holds)
        scribe.recording.act(elsewhere, lambda _, __: HandoffExpired(handoff=elsewhere, ended=None))
        offer(holds)
        scribe.recording.act(busy, lambda _, __: HandoffExpired(handoff=busy, ended=None))
        before = head_of(store, lead)
        for broken in (holds, replace(holds, untouched=(busy,)), replace(holds, statements=2, untouched=())):
            with pytest.raises(PremiseError):
                offer(broken)
        assert before == head_of(store, lead)
        offer(replace(holds, untouched=(quiet,)))
        scribe.recording.record(lead, RunRecorded(run=lead.run.id, by=ANA, items=(item,)), (content,))
        with pytest.raises(PremiseError):
            offer(replace(holds, untouched=()))
        offer(replace(holds, statements=2, untouched=(quiet,)))
