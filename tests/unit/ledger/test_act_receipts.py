"""What happens to runs and handoffs, as receipts: each act is one, and what follows from it is there at once."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import (
    FencedError,
    KeyMissingError,
    NotFoundError,
    StreamClosedError,
)
from batonpass.handoff.transfer.attempt_receipts import Acceptance
from batonpass.ledger.position import Working
from batonpass.model.base.ids import HandoffId, RunId, SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    Carried,
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    Kind,
    Outcome,
    Part,
    RunClosed,
    RunRecorded,
    RunRekeyed,
    RunStarted,
    ToolFailed,
)
from batonpass.model.ledger.content import new_content
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing import FrozenClock
from batonpass.testing.builders import ANA, a_scribe
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import PlainRecording
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.ledger.reading import head_of, last_in, receipts_in, state_of, words_of
from tests.unit.ledger.stores import RacingStore, two_processes
from tests.unit.model.examples import EDITOR, SESSION, an_id


def test_a_handoff_is_three_receipts_in_three_commits() -> None:
    """Offer, accept, close: the happy path costs three commits of one receipt each."""
    store = RacingStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    store.tried.clear()
    child = scribe.recording.accept(scribe.offer(lead))
    scribe.recording.close(child)

    assert [[Kind.HANDOFF_INITIATED], [Kind.HANDOFF_ACCEPTED], [Kind.HANDOFF_COMPLETED]] == [
        [entry.signed.receipt.kind for entry in batch] for batch in store.tried
    ]
    assert 5 == verify_ledger(store).receipts


def test_an_attempt_hangs_from_its_offer() -> None:
    """The first receipt of a child says whose child it is, and hangs from the receipt of the offer."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    handoff = scribe.offer(lead)
    child = scribe.recording.accept(handoff)
    (accepted,) = receipts_in(store, child.run.id)

    assert head_of(store, lead.run.id).head == accepted.previous
    assert isinstance(accepted.body, HandoffAccepted)
    assert (handoff, lead.run.id, 1, "editor", ANA) == (
        accepted.body.handoff,
        accepted.body.parent,
        accepted.body.attempt,
        accepted.body.agent,
        accepted.body.principal,
    )


def test_the_exact_words_are_content() -> None:
    """Intent, task, arguments, result, message, reason and report are kept word for word, each under its name."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start("why")
    child = scribe.recording.accept(scribe.offer(lead, task="what"))
    scribe.call(child, arguments='{"how":1}', result="done")
    scribe.recording.fail_call(child, scribe.recording.request(child, "t", "{}"), "timeout", "too slow")
    scribe.recording.close(child, report="what came of it")
    scribe.recording.cancel(scribe.offer(lead), by=ANA, reason="never mind")
    with store.view() as view:
        receipts = [decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery())]
    words = [words_of(store, receipt) for receipt in receipts if receipt.content]

    assert [
        {"intent": b"why"},
        {"task": b"what"},
        {"arguments": b'{"how":1}'},
        {"result": b"done"},
        {"arguments": b"{}"},
        {"message": b"too slow"},
        {"report": b"what came of it"},
        {"task": b"Make total() round half-even"},
        {"reason": b"never mind"},
    ] == words


def test_a_failed_call_says_which_error() -> None:
    """The code of an error stands in the signed bytes, its words do not."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    call = scribe.recording.request(lead, "send_mail", "{}")
    scribe.recording.fail_call(lead, call, "smtp.refused", "550 no such user")

    assert ToolFailed(run=lead.run.id, call=call, error="smtp.refused") == last_in(store, lead.run.id).body


def test_a_close_out_lists_every_childs_head() -> None:
    """A parent's last receipt proves its children: where each of their streams stood, open or closed."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    done, working = scribe.delegate(lead, "editor"), scribe.delegate(lead, "reviewer")
    scribe.recording.close(done)
    scribe.call(working)
    expected = {head_of(store, done.run.id), head_of(store, working.run.id)}
    scribe.recording.close(lead)
    scribe.recording.close(working)
    closed = last_in(store, lead.run.id).body

    assert isinstance(closed, RunClosed)
    assert expected == set(closed.children)
    assert sorted(child.run for child in closed.children) == [child.run for child in closed.children]
    assert 3 == verify_ledger(store).runs


def test_a_childs_close_out_lists_its_own_children() -> None:
    """The tree is proven hop by hop."""
    store = MemoryStore()
    scribe = a_scribe(store)
    child = scribe.delegate(scribe.start())
    grandchild = scribe.delegate(child)
    scribe.recording.close(grandchild)
    expected = head_of(store, grandchild.run.id)
    scribe.recording.close(child)
    closed = last_in(store, child.run.id).body

    assert isinstance(closed, HandoffCompleted)
    assert (expected,) == closed.children


@pytest.mark.parametrize(
    ("outcome", "kind", "state"),
    [
        pytest.param(Outcome.COMPLETED, HandoffCompleted, State.COMPLETED, id="a child that delivered"),
        pytest.param(Outcome.FAILED, HandoffFailed, State.FAILED, id="a child that failed"),
        pytest.param(Outcome.CANCELLED, HandoffFailed, State.FAILED, id="a child that gave up"),
    ],
)
def test_a_child_closes_its_handoff(outcome: Outcome, kind: type, state: State) -> None:
    """The end of an attempt is the end of the handoff: delivered, or not."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    child = scribe.recording.accept(handoff)
    scribe.recording.close(child, outcome)

    assert isinstance(last_in(store, child.run.id).body, kind)
    assert state == state_of(store, handoff)
    assert 1 == verify_ledger(store).handoffs


def test_a_closed_run_has_no_key_any_more() -> None:
    """With its last receipt a run loses the power to sign."""
    scribe = a_scribe(MemoryStore())
    lead = scribe.start()
    scribe.recording.close(lead)

    with pytest.raises(StreamClosedError):
        scribe.call(lead)
    with pytest.raises(KeyMissingError):
        scribe.run_keys.get(lead.run.id)


def test_a_rekeyed_run_goes_on_in_the_next_epoch() -> None:
    """After its key was lost a run goes on with another; the old holder is fenced; both keys' receipts verify."""
    store = MemoryStore()
    one, other = two_processes(store)
    lead = one.start()
    one.call(lead)
    again = other.recording.rekey(lead.run.id)
    other.call(again)
    rekeyed = receipts_in(store, lead.run.id)[3]

    assert lead.run == again.run
    assert isinstance(rekeyed.body, RunRekeyed)
    assert [1, 1, 1, 2, 2, 2] == [receipt.epoch for receipt in receipts_in(store, lead.run.id)]
    with pytest.raises(FencedError):
        one.recording.close(lead)
    other.recording.close(again)
    assert 8 == verify_ledger(store).receipts


def test_who_was_taken_over_in_its_own_process_is_fenced() -> None:
    """The key at hand is the new holder's; whoever works without an epoch, as hooks do, works with any key at hand."""
    store = MemoryStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    again = scribe.recording.rekey(lead.run.id)
    with pytest.raises(FencedError) as fenced:
        scribe.call(lead)
    scribe.call(again)
    scribe.call(structs.replace(lead, epoch=None))

    assert (1, 2, None) == (lead.epoch, again.epoch, Working(run=lead.run).epoch)
    assert "is in epoch 2 and this writer has epoch 1" in str(fenced.value)
    assert [1, 2, 2, 2, 2, 2] == [receipt.epoch for receipt in receipts_in(store, lead.run.id)]


def test_two_who_rekey_at_once_have_one_winner() -> None:
    """Two hooks find the key lost and share the place where keys are kept: the winner's key is the one that stays."""
    store = RacingStore()
    one, other = two_processes(store)
    lead = one.start()
    other = replace(
        other, run_keys=one.run_keys, recording=PlainRecording(store, other.ledger, one.run_keys, FrozenClock())
    )
    made, go = threading.Event(), threading.Event()
    won: list[Working] = []
    winner = threading.Thread(target=lambda: won.append(other.recording.rekey(lead.run.id)))

    def hold_the_winner() -> None:
        made.set()
        go.wait(timeout=30)

    def let_the_winner_go() -> None:
        go.set()
        winner.join(timeout=30)

    store.first.extend([hold_the_winner, let_the_winner_go])
    winner.start()
    assert made.wait(timeout=30)

    with pytest.raises(FencedError):
        one.recording.rekey(lead.run.id)
    (winning,) = won
    other.call(winning)

    assert 5 == verify_ledger(store).receipts


def test_what_a_human_says_besides_is_recorded_with_the_beginning() -> None:
    """A root's constraints are items of a second receipt in the same commit, signed by the run, named by id."""
    store = RacingStore()
    scribe = a_scribe(store)
    store.tried.clear()
    said = new_content("constraint.1", "at most 3", NOON)
    secret = new_content("secret", b"s" * 32, NOON)
    working = scribe.recording.start(
        "why",
        agent=EDITOR,
        by=ANA,
        series="nightly",
        continues=RunId(an_id("run", 9)),
        contents=(secret,),
        items=((Part.CONSTRAINT, said),),
    )
    started, recorded = receipts_in(store, working.run.id)

    assert [[Kind.RUN_STARTED, Kind.RUN_RECORDED]] == [
        [entry.signed.receipt.kind for entry in batch] for batch in store.tried
    ]
    assert isinstance(started.body, RunStarted)
    assert ("nightly", an_id("run", 9)) == (started.body.series, started.body.continues)
    assert {"intent": b"why", "secret": b"s" * 32} == words_of(store, started)
    named = Carried(item=said.ref.id, digest=said.ref.digest, part=Part.CONSTRAINT)
    assert RunRecorded(run=working.run.id, by=ANA, items=(named,)) == recorded.body
    assert {"constraint.1": b"at most 3"} == words_of(store, recorded)
    assert "nightly" == working.run.series
    assert 3 == verify_ledger(store).receipts


def test_an_acceptance_says_what_was_found_in_the_baton() -> None:
    """Which revision was countersigned, what validation found, and that it would have asked, are in the receipt."""
    store = MemoryStore()
    scribe = a_scribe(store)
    handoff = scribe.offer(scribe.start())
    with store.view() as view:
        initiated = view.get_handoff(handoff).initiated
    said = Acceptance(baton=initiated, problems=("gap.inputs",), would_ask=True)
    child = scribe.recording.accept(handoff, acceptance=said)
    accepted = last_in(store, child.run.id).body

    assert isinstance(accepted, HandoffAccepted)
    assert (initiated, ("gap.inputs",), True) == (accepted.baton, accepted.problems, accepted.would_ask)
    assert 2 == verify_ledger(store).runs


def test_mode_and_session_are_on_every_receipt_of_a_run() -> None:
    """What a run is, all its receipts say."""
    store = MemoryStore()
    scribe = a_scribe(store)
    session = SessionId(SESSION)
    lead = scribe.recording.start("x", agent=EDITOR, by=ANA, mode=Mode.ENFORCED, session=session)
    scribe.call(lead)
    scribe.offer(lead)
    scribe.recording.close(lead)

    assert {(Mode.ENFORCED, session, lead.run.id)} == {
        (receipt.mode, receipt.session, receipt.root) for receipt in receipts_in(store, lead.run.id)
    }


def test_times_are_those_of_the_clock() -> None:
    """Receipts and what is derived from them say when it was, by the relay's clock."""
    store, clock = MemoryStore(), FrozenClock()
    scribe = a_scribe(store, clock=clock)
    lead = scribe.start()
    clock.tick(timedelta(minutes=5))
    scribe.recording.close(lead)
    with store.view() as view:
        run = view.get_run(lead.run.id)

    assert (NOON, NOON + timedelta(minutes=5)) == (run.started_at, run.ended_at)
    assert [NOON, NOON + timedelta(minutes=5)] == [receipt.at for receipt in receipts_in(store, lead.run.id)]


def test_a_handoff_that_does_not_exist_is_named() -> None:
    """Acts on an unknown handoff say which one it was."""
    scribe = a_scribe(MemoryStore())
    unknown = HandoffId("handoff_" + "0" * 26)

    for act in (scribe.recording.accept, scribe.recording.lapse):
        with pytest.raises(NotFoundError, match=unknown):
            act(unknown)
