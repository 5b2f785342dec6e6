"""What each store does: one suite, and no case is skipped for one of them."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from batonpass.errors import (
    BatonpassError,
    ConflictError,
    FencedError,
    GrantError,
    InvalidValueError,
    KeyFailedError,
    StoreError,
)
from batonpass.testing.ledgers import Ledger

Opener = Callable[..., Ledger]
A, B, C = "a" * 64, "b" * 64, "c" * 64


def together(*acts: Callable[[], object]) -> list[str]:
    """Do all of them at once, and return the code of each: empty for one that succeeded."""
    start = threading.Barrier(len(acts))
    codes = [""] * len(acts)

    def do(number: int, act: Callable[[], object]) -> None:
        start.wait()
        try:
            act()
        except BatonpassError as error:
            codes[number] = error.code

    threads = [threading.Thread(target=do, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


# What an append writes


@pytest.mark.parity("append-is-durable-on-return", "one-suite-for-both-stores")
def test_what_was_appended_is_read_by_another(ledger: Ledger, open_ledger: Opener) -> None:
    """What is there when an append returns, every other connection sees, byte by byte."""
    run = ledger.a_run()
    signed = ledger.write("run.recorded", run)

    other = open_ledger().store

    assert signed == other.receipt(run, 2)
    assert [1, 2] == [each.receipt.seq for each in other.receipts(run)]
    assert [signed] == other.receipts(run, after=1)


@pytest.mark.parity("append-is-all-or-none")
def test_entry_is_written_whole_or_not_at_all(ledger: Ledger) -> None:
    """An entry with one receipt that is refused leaves nothing: no receipt, no content, no row."""
    run, other = ledger.a_run(), ledger.a_run()
    legal = ledger.sign("run.recorded", run)
    offer = ledger.sign("handoff.initiated", run, after=legal, handoff=ledger.new_id("handoff"))
    stale = ledger.sign("run.recorded", other, previous=A)
    before = ledger.rows()

    with pytest.raises(ConflictError):
        ledger.append(legal, offer, stale)

    assert before == ledger.rows()
    assert None is ledger.store.receipt(run, 2)
    ledger.append(legal, offer)
    assert ledger.expected_rows() == ledger.rows()


def test_receipts_of_an_entry_may_follow_from_each_other(ledger: Ledger) -> None:
    """An offer and its acceptance are one entry, and stand in this order."""
    run, handoff = ledger.a_run(), ledger.new_id("handoff")
    offer = ledger.sign("handoff.initiated", run, handoff=handoff)
    accepted = ledger.sign("handoff.accepted", ledger.new_id("run"), after=offer, handoff=handoff, root=run)

    ledger.append(offer, accepted)

    assert [offer.digest, accepted.digest] == ledger.written()[-2:]
    assert ledger.expected_rows() == ledger.rows()


@pytest.mark.parity("append-again-succeeds")
def test_same_bytes_again_succeed_and_change_nothing(ledger: Ledger) -> None:
    """A caller that did not hear the answer sends its entry again: also when the run has gone on or has ended."""
    run = ledger.a_run()
    entry = [ledger.sign("run.recorded", run)]
    entry.append(ledger.sign("run.recorded", run, after=entry[0]))
    ledger.append(*entry)
    ledger.append(*entry)
    ledger.write("run.closed", run)
    before = ledger.written()

    ledger.append(*entry)
    ledger.append(entry[0])

    assert before == ledger.written()
    assert ledger.expected_rows() == ledger.rows()


def test_half_of_an_entry_again_is_no_repetition(ledger: Ledger) -> None:
    """An entry of which only a part is there is refused."""
    run = ledger.a_run()
    first = ledger.write("run.recorded", run)
    second = ledger.sign("run.recorded", run)

    with pytest.raises(ConflictError):
        ledger.append(first, second)

    assert None is ledger.store.receipt(run, 3)


def test_same_bytes_at_once_are_written_once(ledger: Ledger, open_ledger: Opener) -> None:
    """Two processes that send the same entry both hear that it is written."""
    run, other = ledger.a_run(), open_ledger()
    signed = ledger.sign("run.recorded", run)

    codes = together(*(partial(store.append, [signed]) for store in (ledger.store, other.store, ledger.store)))

    assert ["", "", ""] == codes
    ledger.note(signed)
    assert ledger.expected_rows() == ledger.rows()


# Who comes first


@pytest.mark.parity("append-compares-in-one-statement")
def test_stale_append_is_refused(ledger: Ledger) -> None:
    """Two writers that read the same head cannot both append."""
    run = ledger.a_run()
    one, two = ledger.sign("run.recorded", run), ledger.sign("run.recorded", run)
    ledger.append(one)

    with pytest.raises(ConflictError) as refused:
        ledger.append(two)

    assert "ledger.stale_head" == refused.value.code


@pytest.mark.parity("append-compares-in-one-statement")
@pytest.mark.parametrize("is_one_process", [True, False], ids=["in one process", "in two processes"])
def test_of_two_writers_with_one_head_one_appends(ledger: Ledger, open_ledger: Opener, *, is_one_process: bool) -> None:
    """Whoever comes first, and however both are batched, the other one is refused."""
    run, other = ledger.a_run(), ledger if is_one_process else open_ledger()
    for _ in range(5):
        one, two = ledger.sign("run.recorded", run), ledger.sign("run.recorded", run)

        codes = together(partial(ledger.store.append, [one]), partial(other.store.append, [two]))

        assert ["", "ledger.stale_head"] == sorted(codes)
        ledger.note(one if not codes[0] else two)
    assert ledger.expected_rows() == ledger.rows()


def test_two_acceptances_of_one_offer(ledger: Ledger, open_ledger: Opener) -> None:
    """One of two receivers gets the handoff."""
    handoff, other = ledger.an_offer(ledger.a_run()), open_ledger()
    one, two = (ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff) for _ in range(2))

    codes = together(partial(ledger.store.append, [one]), partial(other.store.append, [two]))

    assert ["", "ledger.stale_head"] == sorted(codes)


def test_one_refused_entry_fails_alone(ledger: Ledger) -> None:
    """Of entries that are written together those that are refused take none with them, and each hears its reason."""
    runs = [ledger.a_run() for _ in range(12)]
    ended = ledger.a_run()
    ledger.write("run.closed", ended)
    good = [ledger.sign("run.recorded", run) for run in runs]
    stale, late = ledger.sign("run.recorded", runs[0], previous=A), ledger.sign("run.recorded", ended)

    codes = together(*(partial(ledger.store.append, [one]) for one in (*good, stale, late)))

    assert [""] * 12 == codes[:12]
    assert ["ledger.stale_head", "ledger.stream_closed"] == codes[12:]
    for one in good:
        ledger.note(one)
    assert ledger.expected_rows() == ledger.rows()


# Which condition failed


def _taken_over(ledger: Ledger) -> str:
    run = ledger.a_run()
    old = ledger.sign("run.recorded", run)
    ledger.write("run.rekeyed", run)
    return ledger.verdict(old)


def _newer_head_in_an_old_epoch(ledger: Ledger) -> str:
    run = ledger.a_run()
    ledger.write("run.rekeyed", run)
    return ledger.verdict(ledger.sign("run.recorded", run, epoch=0))


def _taken_over_and_ended(ledger: Ledger) -> str:
    run = ledger.a_run()
    old = ledger.sign("run.recorded", run)
    ledger.write("run.rekeyed", run)
    ledger.write("run.closed", run)
    return ledger.verdict(old)


def _ended(ledger: Ledger) -> str:
    run = ledger.a_run()
    ledger.write("run.closed", run)
    return ledger.verdict(ledger.sign("run.recorded", run))


def _begun_twice(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.started", ledger.a_run(), seq=1, previous=ledger.genesis))


def _of_another_relay(ledger: Ledger) -> str:
    ledger.write("key.enrolled", ledger.relay(2), relay=2)
    return ledger.verdict(ledger.sign("run.recorded", ledger.a_run(), relay=2))


def _not_enrolled(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.started", ledger.new_id("run"), relay=2))


def _not_enrolled_takes_over(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.rekeyed", ledger.a_run(), relay=2))


def _of_another_ledger(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.started", ledger.new_id("run"), previous=A))


def _enrolled_elsewhere(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("key.enrolled", ledger.relay(2), relay=2, previous=A))


def _lost_receipts(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.recorded", ledger.a_run(), seq=5))


def _lost_stream(ledger: Ledger) -> str:
    return ledger.verdict(ledger.sign("run.recorded", ledger.new_id("run"), seq=5, previous=A))


def _offered_twice(ledger: Ledger) -> str:
    run = ledger.a_run()
    return ledger.verdict(ledger.sign("handoff.initiated", run, handoff=ledger.an_offer(run)))


def _no_such_handoff(ledger: Ledger) -> str:
    unknown = ledger.new_id("handoff")
    return ledger.verdict(ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=unknown))


def _accepted_before_a_retry(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    early = ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff)
    ledger.write("handoff.failed", ledger.an_attempt(handoff))
    ledger.write("handoff.retried", handoff)
    return ledger.verdict(early)


def _accepted_before_a_settlement(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    run, call = ledger.an_attempt(handoff), ledger.new_id("call")
    ledger.write("tool.requested", run, call=call)
    ledger.write("handoff.failed", run)
    ledger.write("handoff.retried", handoff)
    early = ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff)
    ledger.write("tool.settled", handoff, run=run, call=call)
    return ledger.verdict(early)


def _accepted_from_another_parent(ledger: Ledger) -> str:
    run, other = ledger.a_run(), ledger.a_run()
    handoff = ledger.an_offer(run)
    return ledger.verdict(ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff, parent=other))


def _accepted_by_another_agent(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    return ledger.verdict(ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff, agent="mallory"))


def _accepted_as_a_later_attempt(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    return ledger.verdict(ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff, attempt=2))


def _accepted_while_running(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    ledger.an_attempt(handoff)
    return ledger.verdict(ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff))


def _retried_at_an_older_head(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    run = ledger.an_attempt(handoff)
    retried = ledger.sign("handoff.retried", handoff)
    ledger.write("run.recorded", run)
    return ledger.verdict(retried)


def _retried_at_another_head(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    run = ledger.an_attempt(handoff)
    return ledger.verdict(ledger.sign("handoff.retried", handoff, ended_run=ledger.head(run, A)))


def _retried_when_completed(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    ledger.write("handoff.completed", ledger.an_attempt(handoff))
    return ledger.verdict(ledger.sign("handoff.retried", handoff))


def _completed_after_a_retry(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    run = ledger.an_attempt(handoff)
    late = ledger.sign("handoff.completed", run)
    ledger.write("handoff.retried", handoff)
    return ledger.verdict(late)


def _completed_by_another_run(ledger: Ledger) -> str:
    run = ledger.a_run()
    handoff = ledger.an_offer(run)
    ledger.an_attempt(handoff)
    return ledger.verdict(ledger.sign("handoff.completed", run, handoff=handoff, parent=run, attempt=1))


def _withdrawn_after_a_takeover(ledger: Ledger) -> str:
    run = ledger.a_run()
    handoff = ledger.an_offer(run)
    ledger.write("run.rekeyed", run)
    return ledger.verdict(ledger.sign("handoff.cancelled", handoff, holder_epoch=0))


def _withdrawn_while_running_unseen(ledger: Ledger) -> str:
    handoff = ledger.an_offer(ledger.a_run())
    withdrawn = ledger.sign("handoff.cancelled", handoff)
    ledger.an_attempt(handoff)
    return ledger.verdict(withdrawn)


def _requested_twice(ledger: Ledger) -> str:
    run, call = ledger.a_run(), ledger.new_id("call")
    ledger.write("tool.requested", run, call=call)
    return ledger.verdict(ledger.sign("tool.requested", run, call=call))


def _second_outcome(ledger: Ledger) -> str:
    run, call = ledger.a_run(), ledger.new_id("call")
    ledger.write("tool.requested", run, call=call)
    ledger.write("tool.completed", run, call=call)
    return ledger.verdict(ledger.sign("tool.failed", run, call=call))


def _outcome_of_another_run(ledger: Ledger) -> str:
    call = ledger.new_id("call")
    ledger.write("tool.requested", ledger.a_run(), call=call)
    return ledger.verdict(ledger.sign("tool.completed", ledger.a_run(), call=call))


def _outcome_of_what_was_settled(ledger: Ledger) -> str:
    run, call = ledger.a_run(), ledger.new_id("call")
    ledger.write("tool.requested", run, call=call)
    ledger.write("tool.settled", run, call=call)
    return ledger.verdict(ledger.sign("tool.completed", run, call=call))


def _late_result_of_no_attempt(ledger: Ledger) -> str:
    run = ledger.a_run()
    handoff = ledger.an_offer(run)
    return ledger.verdict(ledger.sign("tool.late_result", handoff, run=run, call=ledger.new_id("call")))


def _charged_after_a_revocation(ledger: Ledger) -> str:
    run = ledger.a_run()
    judged = ledger.sign("tool.requested", run, call=ledger.new_id("call"), charges=(ledger.a_run(), run))
    ledger.write("grant.revoked", ledger.relay(), account=run)
    return ledger.verdict(judged)


def _revoked_twice(ledger: Ledger) -> str:
    run = ledger.a_run()
    ledger.write("grant.revoked", ledger.relay(), account=run)
    return ledger.verdict(ledger.sign("grant.revoked", ledger.relay(), account=run))


def _same_request(ledger: Ledger) -> str:
    ledger.write("run.started", ledger.new_id("run"), request=("key", "start"))
    return ledger.verdict(ledger.sign("run.started", ledger.new_id("run"), request=("key", "start")))


REFUSALS = [
    pytest.param(_taken_over, "ledger.fenced", id="a run that was taken over"),
    pytest.param(_newer_head_in_an_old_epoch, "ledger.fenced", id="an old epoch at the newest head"),
    pytest.param(_taken_over_and_ended, "ledger.fenced", id="a run that was taken over, and has ended since"),
    pytest.param(_ended, "ledger.stream_closed", id="a run that has ended"),
    pytest.param(_begun_twice, "ledger.stale_head", id="a second beginning"),
    pytest.param(_of_another_relay, "ledger.precondition_failed", id="a run of another relay"),
    pytest.param(_not_enrolled, "key.not_enrolled", id="a beginning by a relay that is not enrolled"),
    pytest.param(_not_enrolled_takes_over, "key.not_enrolled", id="a takeover by a relay that is not enrolled"),
    pytest.param(_of_another_ledger, "ledger.precondition_failed", id="a run of another ledger"),
    pytest.param(_enrolled_elsewhere, "ledger.precondition_failed", id="a relay of another ledger"),
    pytest.param(_lost_receipts, "ledger.rewound", id="receipts that the ledger has lost"),
    pytest.param(_lost_stream, "ledger.rewound", id="a stream that the ledger has lost"),
    pytest.param(_offered_twice, "handoff.already_offered", id="the same offer"),
    pytest.param(_no_such_handoff, "id.unknown", id="a handoff that was never offered"),
    pytest.param(_accepted_before_a_retry, "ledger.stale_head", id="an acceptance from before a retry"),
    pytest.param(_accepted_before_a_settlement, "ledger.stale_head", id="an acceptance from before a settlement"),
    pytest.param(_accepted_from_another_parent, "ledger.precondition_failed", id="an acceptance from another parent"),
    pytest.param(_accepted_by_another_agent, "ledger.precondition_failed", id="an acceptance by another agent"),
    pytest.param(_accepted_as_a_later_attempt, "ledger.stale_head", id="an acceptance as a later attempt"),
    pytest.param(_accepted_while_running, "ledger.stale_head", id="an acceptance of what runs"),
    pytest.param(_retried_at_an_older_head, "ledger.stale_head", id="a retry at an older head"),
    pytest.param(_retried_at_another_head, "ledger.stale_head", id="a retry at a head that never was"),
    pytest.param(_retried_when_completed, "ledger.stale_head", id="a retry of what is completed"),
    pytest.param(_completed_after_a_retry, "ledger.fenced", id="a completion after a retry"),
    pytest.param(_completed_by_another_run, "ledger.fenced", id="a completion by another run"),
    pytest.param(_withdrawn_after_a_takeover, "ledger.fenced", id="a withdrawal after a takeover"),
    pytest.param(_withdrawn_while_running_unseen, "ledger.stale_head", id="a withdrawal of what was accepted"),
    pytest.param(_requested_twice, "ledger.precondition_failed", id="a call that is requested twice"),
    pytest.param(_second_outcome, "ledger.precondition_failed", id="a second outcome"),
    pytest.param(_outcome_of_another_run, "ledger.precondition_failed", id="an outcome of another run's call"),
    pytest.param(_outcome_of_what_was_settled, "ledger.precondition_failed", id="an outcome of what was settled"),
    pytest.param(_late_result_of_no_attempt, "ledger.precondition_failed", id="a late result of no attempt"),
    pytest.param(_charged_after_a_revocation, "grant.revoked", id="a call under a grant that was revoked"),
    pytest.param(_revoked_twice, "ledger.precondition_failed", id="a second revocation"),
    pytest.param(_same_request, "ledger.precondition_failed", id="the same part of a request"),
]


@pytest.mark.parity(
    "refusal-names-its-reason",
    "append-needs-an-enrolled-recorder",
    "genesis-binds-the-root-key",
    "acceptance-names-the-handoff-head",
    "fence-names-the-exact-head",
    "fenced-comes-before-closed",
    "newer-epoch-is-not-adopted",
    "revocation-decides-in-the-commit",
    "sim-what-verify-refuses-cannot-be-written",
)
@pytest.mark.parametrize(("act", "code"), REFUSALS)
def test_refusal_names_its_reason(ledger: Ledger, act: Callable[[Ledger], str], code: str) -> None:
    """Each condition of a receipt is compared in the commit, and the error says which one failed."""
    assert code == act(ledger)
    assert ledger.expected_rows() == ledger.rows()


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        pytest.param(FencedError, _taken_over, id="fenced"),
        pytest.param(GrantError, _charged_after_a_revocation, id="revoked"),
        pytest.param(KeyFailedError, _not_enrolled, id="not enrolled"),
    ],
)
def test_reason_has_its_class(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], act: Callable[[Ledger], str]
) -> None:
    """A program catches the class."""
    monkeypatch.setattr(ledger, "verdict", ledger.append)

    with pytest.raises(kind):
        act(ledger)


def test_withdrawal_by_a_run_that_was_taken_over_says_so(ledger: Ledger) -> None:
    """Also of a handoff that runs: the rows that the same receipt would have moved do not hide the reason."""
    run = ledger.a_run()
    handoff = ledger.an_offer(run)
    ledger.an_attempt(handoff)
    ledger.write("run.rekeyed", run)

    assert "ledger.fenced" == ledger.verdict(ledger.sign("handoff.cancelled", handoff, holder_epoch=0))


def test_ledger_is_founded_once(open_ledger: Opener) -> None:
    """Of two relays that found it with other root keys one does; the other one is of another ledger."""
    one, two = open_ledger(), open_ledger(root_key=b"\1" * 32)

    assert "" == one.verdict(one.sign("key.enrolled", one.relay()))
    assert "ledger.precondition_failed" == two.verdict(two.sign("key.enrolled", two.relay(2), relay=2))
    assert one.genesis == two.store.genesis()
    first = two.store.first_receipt()
    assert first is not None
    assert one.relay() == first.stream


def test_nothing_precedes_the_founding(open_ledger: Opener) -> None:
    """An empty ledger has no genesis, and takes no run."""
    ledger = open_ledger()

    assert (None, None) == (ledger.store.genesis(), ledger.store.first_receipt())
    assert "key.not_enrolled" == ledger.verdict(ledger.sign("run.started", ledger.new_id("run")))


def test_name_that_one_store_could_not_keep_is_signed_for_neither(ledger: Ledger) -> None:
    """Text in PostgreSQL has no NUL, so no name has one; every other letter comes back as it was."""
    with pytest.raises(InvalidValueError):
        ledger.sign("run.started", ledger.new_id("run"), agent="lead\0")

    agent = "\x01 ' \\ % : $1 \u200b \U0001f600\n"
    run = ledger.write("run.started", ledger.new_id("run"), agent=agent).stream
    row = ledger.store.find_stream(run)
    assert row is not None
    assert agent == row.agent
    assert [run] == ledger.store.find_by_agent("runs", agent, 5)


# What is read


def test_reads_of_one(ledger: Ledger) -> None:
    """What is there is found by its id; what is not is None."""
    run = ledger.a_run()
    handoff = ledger.an_offer(run)

    stream, row = ledger.store.find_stream(run), ledger.store.find_handoff(handoff)

    assert stream is not None
    assert (run, run, 2, "open", "lead", "user:ana") == (
        stream.id, stream.root, stream.seq, stream.state, stream.agent, stream.principal
    )  # fmt: skip
    assert row is not None
    assert (run, 2, "editor", "offered", 0, None) == (row.parent, row.seq, row.to, row.state, row.attempt, row.run)
    assert (None, None) == (ledger.store.find_stream(handoff), ledger.store.find_handoff(run))
    assert (None, []) == (ledger.store.receipt(run, 3), ledger.store.receipts(handoff))


def test_heads_are_of_latest_attempts(ledger: Ledger) -> None:
    """A handoff without an attempt has none."""
    run = ledger.a_run()
    waiting, retried = ledger.an_offer(run), ledger.an_offer(run)
    ledger.write("handoff.failed", ledger.an_attempt(retried))
    ledger.write("handoff.retried", retried)
    latest = ledger.an_attempt(retried)

    assert [latest] == [head.id for head in ledger.store.heads((waiting, retried))]


def test_request_has_its_receipts_in_their_order(ledger: Ledger) -> None:
    """Each part of a request once, whichever streams its receipts are in."""
    request = ("key", "act")
    run = ledger.write("run.started", ledger.new_id("run"), request=request).stream
    handoff = ledger.new_id("handoff")
    offer = ledger.write("handoff.initiated", run, handoff=handoff, request=request)
    ledger.write("run.recorded", run, request=("another key", "act"))
    cancelled = ledger.write("handoff.cancelled", handoff, request=request)
    digest = cancelled.receipt.request
    assert digest is not None

    found = ledger.store.find_request(digest)

    assert [(run, 1), (run, 2), (handoff, 1)] == [(one.stream, one.receipt.seq) for one in found]
    assert offer == found[1]
    assert [] == ledger.store.find_request(A)


def test_calls_without_an_outcome_are_listed(ledger: Ledger) -> None:
    """A call that has its outcome, or was settled, is none of them."""
    run = ledger.a_run()
    done, settled, waiting = (ledger.new_id("call") for _ in range(3))
    for call in (done, settled, waiting):
        ledger.write("tool.requested", run, call=call, key=A)
    ledger.write("tool.completed", run, call=done)
    ledger.write("tool.settled", run, call=settled)

    assert [(waiting, run, A)] == [(row.id, row.run, row.key) for row in ledger.store.open_calls(run)]
    assert [] == ledger.store.open_calls(ledger.a_run())


def test_receipts_that_touched_a_target(ledger: Ledger) -> None:
    """Outcomes of calls that changed it, in their order, with the words beside them."""
    found = []
    for targets in ((A, B), (B,), (A,)):
        run, call = ledger.a_run(), ledger.new_id("call")
        ledger.write("tool.requested", run, call=call)
        found.append(ledger.write("tool.completed", run, call=call, effects=ledger.effects(*targets)))

    assert [found[0], found[2]] == ledger.store.touching(A)
    assert [found[0], found[1]] == ledger.store.touching(B)
    assert [] == ledger.store.touching(C)


def test_grant_has_ended(ledger: Ledger) -> None:
    """Only the one that was revoked."""
    run, other = ledger.a_run(), ledger.a_run()
    ledger.write("grant.revoked", ledger.relay(), account=run)

    assert (True, False) == (ledger.store.is_revoked(run), ledger.store.is_revoked(other))


def test_ids_by_their_ending(ledger: Ledger) -> None:
    """Runs and handoffs apart, the latest first; letters that SQL reads as patterns are letters."""
    runs = [ledger.a_run() for _ in range(3)]
    handoffs = [ledger.an_offer(runs[0]) for _ in range(3)]
    store = ledger.store

    assert [runs[1]] == store.find_by_ending("runs", runs[1][-8:], 5)
    assert [handoffs[2]] == store.find_by_ending("handoffs", handoffs[2][-8:], 5)
    assert handoffs[:0:-1] == store.find_by_ending("handoffs", "", 2)
    assert runs[:0:-1] == store.find_by_ending("runs", "", 2)
    assert [] == store.find_by_ending("runs", "%", 5)


def test_ids_by_agent(ledger: Ledger) -> None:
    """Runs of an agent, and handoffs to it, the latest first."""
    roots = [ledger.a_run() for _ in range(3)]
    handoffs = [ledger.an_offer(root) for root in roots]
    attempt = ledger.an_attempt(handoffs[1])

    assert [roots[2], roots[1]] == ledger.store.find_by_agent("runs", "lead", 2)
    assert [attempt] == ledger.store.find_by_agent("runs", "editor", 2)
    assert [handoffs[2], handoffs[1]] == ledger.store.find_by_agent("handoffs", "editor", 2)
    assert [] == ledger.store.find_by_agent("handoffs", "lead", 2)


def test_runs_are_listed_by_page(ledger: Ledger) -> None:
    """The latest first, by state and by agent, from the one before the last page's end on; no other stream."""
    roots = [ledger.a_run() for _ in range(4)]
    handoff = ledger.an_offer(roots[0])
    attempt = ledger.an_attempt(handoff)
    ledger.write("handoff.cancelled", handoff)
    ledger.write("run.closed", roots[2])

    def listed(
        state: str | None = None, agent: str | None = None, before: str | None = None, limit: int = 9
    ) -> list[str]:
        return [row.id for row in ledger.store.list_runs(state=state, agent=agent, before=before, limit=limit)]

    assert [attempt, *roots[::-1]] == listed()
    assert [attempt, roots[3]] == listed(limit=2)
    assert roots[2::-1] == listed(before=roots[3])
    assert [roots[3], roots[1], roots[0]] == listed("open")
    assert [roots[2]] == listed("completed", "lead")
    assert [attempt] == listed(agent="editor")


def test_runs_of_a_tree(ledger: Ledger) -> None:
    """The root first, and none of another tree."""
    root, other = ledger.a_run(), ledger.a_run()
    child = ledger.an_attempt(ledger.an_offer(root))
    grandchild = ledger.an_attempt(ledger.an_offer(child))
    ledger.an_attempt(ledger.an_offer(other))

    assert [root, child, grandchild] == [row.id for row in ledger.store.runs_of_tree(root)]


# The view


@pytest.mark.parity("rows-follow-from-receipts-alone")
def test_view_has_receipts_by_position_and_the_rows_that_follow(ledger: Ledger) -> None:
    """Positions begin at one and have no gaps, also after an append that was refused."""
    run = ledger.a_run()
    assert "ledger.stale_head" == ledger.verdict(ledger.sign("run.recorded", run, previous=A))
    ledger.write("handoff.completed", ledger.an_attempt(ledger.an_offer(run)))

    positions, made, rows = ledger.fold()

    assert [1, 2, 3, 4, 5] == positions
    assert made == rows


@pytest.mark.parity("verify-reads-one-view")
def test_view_is_one_moment_beside_writers(ledger: Ledger, open_ledger: Opener) -> None:
    """However long it is looked at: its rows follow from its receipts, and what had a position keeps it."""
    others = [open_ledger() for _ in range(3)]
    stop = threading.Event()

    def work(other: Ledger) -> None:
        runs: list[str] = []
        while not stop.is_set():
            started = ledger.sign("run.started", ledger.new_id("run"))
            other.store.append([started])
            runs.append(started.stream)

    workers = [threading.Thread(target=work, args=(other,)) for other in others]
    for worker in workers:
        worker.start()
    try:
        earlier: list[str] = []
        for _ in range(6):
            with ledger.store.view() as view:
                before = [digest for _, digest, *_ in view.receipts()]
                positions, made, rows = ledger.fold()
                assert before == [digest for _, digest, *_ in view.receipts()]
            assert list(range(1, len(positions) + 1)) == positions
            assert made == rows
            now = ledger.written()
            assert earlier == now[: len(earlier)]
            earlier = now
    finally:
        stop.set()
        for worker in workers:
            worker.join()


# The process


@pytest.mark.parametrize("act", ["append", "read", "view"])
def test_store_does_not_survive_a_fork(ledger: Ledger, act: str) -> None:
    """A child that uses its parent's store is refused, and the parent goes on."""
    run = ledger.a_run()
    signed = ledger.sign("run.recorded", run)
    child = os.fork()
    if not child:
        status = 1
        with suppress(BaseException):
            try:
                if act == "append":
                    ledger.store.append([signed])
                elif act == "read":
                    ledger.store.find_stream(run)
                else:
                    with ledger.store.view():
                        pass
            except StoreError as error:
                status = 0 if error.code == "store.forked" else 2
            ledger.store.close()
        os._exit(status)

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ledger.append(signed)
    assert ledger.expected_rows() == ledger.rows()
