"""The queue: which handoffs workers can claim follows only from their recorded events."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import IllegalTransitionError, InvalidValueError, LeaseLostError, RewoundError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.ledger.position import Working, need
from batonpass.model.base.ids import AgentId, Digest, HandoffId, StreamId, new_handoff_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    ErrorType,
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffHeld,
    HandoffInitiated,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    Outcome,
    WaitUntil,
)
from batonpass.model.ledger.entry import Entry
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.leases import (
    A_WHILE,
    AT_ONCE,
    claimed,
    leases_of,
    nothing_to_claim,
    state_of,
    taken,
    waiting,
)
from batonpass.testing.conformance.support import NOW, WithScribe, an_entry, head_of, in_a_fork

Ending = Callable[[Scribe, HandoffId, Working], object]


def _ask(scribe: Scribe, handoff: HandoffId, *, token: int) -> None:
    asked = HandoffAsked(
        handoff=handoff,
        by=ANA,
        error=ErrorType.DATA_GAP,
        check="deadline",
        question=Digest("ef" * 32),
    )
    scribe.recording.act(handoff, lambda *_: asked, token=token)


def _hold(scribe: Scribe, handoff: HandoffId, _: Working) -> None:
    scribe.recording.act(
        handoff,
        lambda known, ended: HandoffHeld(handoff=handoff, attempt=1, ended=need(ended, known), reason="call.held"),
    )


def _wait(scribe: Scribe, handoff: HandoffId, child: Working) -> HandoffId:
    """End an attempt because it waits for a handoff that it makes. Return that handoff."""
    below = scribe.offer(child)
    scribe.recording.act(
        handoff,
        lambda known, ended: HandoffHeld(
            handoff=handoff,
            attempt=known.attempt,
            ended=need(ended, known),
            reason="handoff.awaits",
            awaits=below,
            wait_until=WaitUntil.SETTLED,
        ),
    )
    return below


_ENDINGS: dict[str, tuple[Ending, State]] = {
    "completed": (lambda scribe, _, child: scribe.recording.close(child), State.COMPLETED),
    "failed": (lambda scribe, _, child: scribe.recording.close(child, Outcome.FAILED), State.FAILED),
    "cancelled": (
        lambda scribe, handoff, _: scribe.recording.cancel(handoff, by=ANA, reason="enough"),
        State.CANCELLED,
    ),
    "held": (_hold, State.HELD),
    "waiting": (_wait, State.HELD),
    "lapsed": (lambda scribe, handoff, _: scribe.recording.lapse(handoff), State.READY),
}


class Queueing(WithScribe):
    """The queue: which handoffs workers can claim follows only from their recorded events."""

    @pytest.mark.parametrize("ending", _ENDINGS)
    def test_a_lease_ends_with_the_work(self, store: LedgerStore, scribe: Scribe, ending: str) -> None:
        """The end of an attempt ends its lease; only a lapse puts the handoff back into the queue."""
        end, state = _ENDINGS[ending]
        handoff = waiting(scribe)
        lease = claimed(store, AT_ONCE)
        end(scribe, handoff, taken(scribe, lease))

        assert (state, []) == (state_of(store, handoff), leases_of(store))
        with pytest.raises(LeaseLostError):
            store.renew(lease, A_WHILE)
        assert store.seize(holder="sweeper", lease_for=A_WHILE) is None
        store.release(lease)
        assert (state is not State.READY) == nothing_to_claim(store)

    def test_a_lapse_after_a_release_can_be_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """An attempt that gave its lease back and then lapsed is queued again like any other."""
        handoff = waiting(scribe)
        lease = claimed(store)
        taken(scribe, lease)
        store.release(lease)
        scribe.recording.lapse(handoff)

        assert handoff == claimed(store).handoff

    def test_a_retried_handoff_can_be_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """A retry queues a failed handoff again, for the same agent."""
        handoff = waiting(scribe)
        scribe.recording.close(taken(scribe, claimed(store)), Outcome.FAILED)
        scribe.recording.act(handoff, lambda *_: HandoffRetried(handoff=handoff, by=ANA))

        lease = claimed(store, A_WHILE, "editor")
        assert 2 == taken(scribe, lease).run.attempt

    def test_a_replacement_waits_for_the_other_agent(self, store: LedgerStore, scribe: Scribe) -> None:
        """After a replacement, workers of the old agent find nothing and those of the new one do."""
        handoff = waiting(scribe)
        declined = HandoffDeclined(handoff=handoff, by=ANA, code="busy")
        scribe.recording.act(handoff, lambda *_: declined, token=claimed(store).token)
        assert (State.DECLINED, []) == (state_of(store, handoff), leases_of(store))
        scribe.recording.act(handoff, lambda *_: HandoffReplaced(handoff=handoff, by=ANA, to=AgentId("reviewer")))

        assert store.claim(holder="w", lease_for=A_WHILE, agents=[AgentId("editor")]) is None
        assert handoff == claimed(store, A_WHILE, "reviewer").handoff

    def test_a_held_offer_waits_for_its_approval(self, store: LedgerStore, scribe: Scribe) -> None:
        """A held handoff can be claimed once it is approved, and not before."""
        lead = scribe.start()
        handoff = new_handoff_id(NOW)
        scribe.recording.record(
            lead,
            HandoffInitiated(
                handoff=handoff,
                run=lead.run.id,
                to=AgentId("editor"),
                carrier=Carrier.WORKER,
                state=State.HELD,
            ),
        )
        assert nothing_to_claim(store)
        scribe.recording.act(handoff, lambda *_: HandoffApproved(handoff=handoff, by=ANA))

        assert handoff == claimed(store).handoff

    def test_an_attempt_that_waited_goes_on(self, store: LedgerStore, scribe: Scribe) -> None:
        """It can be claimed once it is resumed, and not before; then it cannot be resumed again."""
        handoff = waiting(scribe)
        below = _wait(scribe, handoff, taken(scribe, claimed(store)))
        resumed = HandoffResumed(handoff=handoff, attempt=1, awaits=below)
        assert (State.HELD, True) == (state_of(store, handoff), nothing_to_claim(store))
        scribe.recording.act(handoff, lambda *_: resumed)
        with pytest.raises(IllegalTransitionError):
            scribe.recording.act(handoff, lambda *_: resumed)

        assert 2 == taken(scribe, claimed(store)).run.attempt
        store.sequence()
        assert 0 < verify_ledger(store).receipts

    @pytest.mark.parametrize("claims", [False, True], ids=["nobody holds it", "a worker has claimed it"])
    def test_a_parked_handoff_has_failed(self, store: LedgerStore, scribe: Scribe, claims: bool) -> None:  # noqa: FBT001
        """Nobody can claim it any more, a lease on it is over, and only a retry queues it again."""
        handoff = waiting(scribe)
        taken(scribe, claimed(store))
        scribe.recording.lapse(handoff)
        if claims:
            claimed(store)
        scribe.recording.act(handoff, lambda *_: HandoffParked(handoff=handoff, attempt=1, error="exhausted"))

        assert (State.FAILED, []) == (state_of(store, handoff), leases_of(store))
        assert nothing_to_claim(store)
        store.sequence()
        assert 0 < verify_ledger(store).receipts
        scribe.recording.act(handoff, lambda *_: HandoffRetried(handoff=handoff, by=ANA))
        assert handoff == claimed(store).handoff

    def test_what_waits_for_somebody_can_be_cancelled(self, store: LedgerStore, scribe: Scribe) -> None:
        """A held handoff and one with a question end like any other, for good."""
        held, asked = waiting(scribe), waiting(scribe)
        _hold(scribe, held, taken(scribe, claimed(store)))
        _ask(scribe, asked, token=claimed(store).token)
        for handoff in (held, asked):
            scribe.recording.cancel(handoff, by=ANA, reason="enough")

        assert [State.CANCELLED] * 2 == [state_of(store, handoff) for handoff in (held, asked)]
        assert nothing_to_claim(store)
        with store.view() as view:
            assert [] == list(view.find_held())
        store.sequence()
        assert 0 < verify_ledger(store).receipts

    def test_a_question_keeps_workers_away(self, store: LedgerStore, scribe: Scribe) -> None:
        """A question ends the lease; the handoff can be claimed once it is answered."""
        handoff = waiting(scribe)
        first = claimed(store)
        _ask(scribe, handoff, token=first.token)
        assert (State.ASKED, []) == (state_of(store, handoff), leases_of(store))
        assert nothing_to_claim(store)
        scribe.recording.act(handoff, lambda *_: HandoffAnswered(handoff=handoff, by=ANA, revision=2))

        second = claimed(store)
        assert (handoff, True) == (second.handoff, first.token != second.token)

    def test_nothing_is_asked_under_a_lost_lease(self, store: LedgerStore, scribe: Scribe) -> None:
        """Every receipt with a token needs the lease, not only the acceptance."""
        handoff = waiting(scribe)
        lease = claimed(store)

        with pytest.raises(LeaseLostError):
            _ask(scribe, handoff, token=lease.token ^ 1)

        assert (State.CLAIMED, [lease]) == (state_of(store, handoff), leases_of(store))

    def test_what_was_cancelled_under_a_claim_is_gone(self, store: LedgerStore, scribe: Scribe) -> None:
        """A claimed handoff can be cancelled."""
        handoff = waiting(scribe)
        lease = claimed(store)
        scribe.recording.cancel(handoff, by=ANA, reason="enough")

        assert (State.CANCELLED, []) == (state_of(store, handoff), leases_of(store))
        with pytest.raises(LeaseLostError):
            store.renew(lease, A_WHILE)
        store.release(lease)
        assert nothing_to_claim(store)

    def test_a_refused_batch_leaves_leases_alone(self, store: LedgerStore, scribe: Scribe) -> None:
        """If a later entry of a batch is refused, an earlier one has not changed a lease."""
        lead = scribe.start()
        handoff = waiting(scribe, parent=lead)
        lease = claimed(store)
        with store.view() as view:
            known = view.get_handoff(handoff)
        cancelled = Draft(
            stream=StreamId(handoff),
            body=HandoffCancelled(handoff=handoff, by=ANA),
            root=known.root,
            anchor=known.initiated,
        )
        good = Entry(signed=sign_receipt(cancelled, None, scribe.identity, NOW))
        bad = an_entry(scribe, lead, replace(head_of(store, lead), seq=7))

        with pytest.raises(RewoundError):
            store.append([good, bad])

        assert (State.CLAIMED, [lease]) == (state_of(store, handoff), leases_of(store))

    def test_a_repeated_append_needs_no_lease_any_more(self, store: LedgerStore, scribe: Scribe) -> None:
        """A writer that got no answer may repeat its acceptance, although its lease is over by now."""
        handoff = waiting(scribe)
        lease = claimed(store)
        with store.view() as view:
            known = view.get_handoff(handoff)
        asked = HandoffAsked(
            handoff=handoff,
            by=ANA,
            error=ErrorType.DATA_GAP,
            check="deadline",
            question=Digest("ef" * 32),
        )
        draft = Draft(stream=StreamId(handoff), body=asked, root=known.root, anchor=known.initiated)
        entry = Entry(signed=sign_receipt(draft, None, scribe.identity, NOW), token=lease.token)
        store.append([entry])
        store.append([entry])

        assert (State.ASKED, []) == (state_of(store, handoff), leases_of(store))

    def test_a_holder_has_a_name(self, store: LedgerStore, scribe: Scribe) -> None:
        """A claim under an invalid name is refused, and the handoff stays in the queue."""
        handoff = waiting(scribe)

        with pytest.raises(InvalidValueError):
            store.claim(holder="", lease_for=A_WHILE)

        assert (State.READY, []) == (state_of(store, handoff), leases_of(store))

    def test_a_fork_claims_nothing(self, store: LedgerStore, scribe: Scribe) -> None:
        """In a forked child, the parent's store refuses leases too."""
        waiting(scribe)
        lease = claimed(store)

        assert 42 == in_a_fork(lambda: store.claim(holder="w", lease_for=A_WHILE))
        assert 42 == in_a_fork(lambda: store.renew(lease, A_WHILE))
        assert 42 == in_a_fork(lambda: store.release(lease))
        assert 42 == in_a_fork(lambda: store.seize(holder="w", lease_for=A_WHILE))
