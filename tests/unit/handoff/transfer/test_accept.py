"""Receiving: validate before anything runs; then accept, ask one question, or decline."""

from datetime import timedelta

import pytest

from batonpass import Brief
from batonpass.errors import (
    HandoffAskedError,
    HandoffDeclinedError,
    HandoffEndedError,
    HandoffHeldError,
    IllegalTransitionError,
    InvalidValueError,
    LeaseLostError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Claim, Constraint, OpenQuestion
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, AT_ONCE, LONE_SURROGATE, LONG, Places, at_once, bodies, kinds, receipts

BLOCKING = OpenQuestion("which quarter?", blocking=True)


@pytest.fixture
def asking(places: Places) -> Relay:
    """Return a relay whose receivers ask."""
    return places.relay(policy=HandoffPolicy(asks=True))


def test_an_accepted_baton_is_countersigned(lead: LiveRun, relay: Relay) -> None:
    """The acceptance names the receipt of the baton that it takes, and hangs from it."""
    handoff = lead.hand_off("editor", "make it so")
    handoff.accept()
    (accepted,) = receipts(relay, "handoff.accepted")

    assert handoff.info().initiated == accepted.body.baton == accepted.previous  # type: ignore[union-attr]


def test_problems_that_do_not_stop_it_are_recorded(lead: LiveRun, relay: Relay) -> None:
    """Without a policy nobody asks, and it is written down that somebody would have."""
    lead.hand_off("editor", "make it so", items=[BLOCKING], brief=Brief(inputs=["data.csv"])).accept()
    (accepted,) = bodies(relay, "handoff.accepted")

    assert {"data-gap.question-open", "data-gap.input-missing"} <= set(accepted.problems)
    assert accepted.would_ask


def test_one_question_is_asked_and_answered(asking: Relay) -> None:
    """The answer makes the next revision, which the acceptance countersigns; no second question is asked."""
    lead = asking.start("begin", by=ANA)
    limit = Constraint(key="rate", operator="<=", value="5")
    handoff = lead.hand_off("editor", "go", items=[BLOCKING, limit])
    with pytest.raises(HandoffAskedError) as asked:
        handoff.accept()
    with pytest.raises(HandoffAskedError, match="asks"):
        handoff.accept()
    assert asked.value.question == handoff.result().question
    handoff.answer("the third")
    child = handoff.accept()
    assert child.baton is not None

    assert (1, "the third") == (child.baton.revision, child.baton.answers[0].answer)
    assert not bodies(asking, "handoff.accepted")[0].would_ask
    (answered,) = bodies(asking, "handoff.answered")
    assert (1, 1, None) == (len(bodies(asking, "handoff.asked")), answered.revision, handoff.result().question)


def test_the_answer_to_the_only_question_leaves_none(asking: Relay) -> None:
    """What was blocking is answered: the receiver goes on, and would not have asked."""
    lead = asking.start("begin", by=ANA)
    handoff = lead.hand_off("editor", "go", items=[BLOCKING])
    with pytest.raises(HandoffAskedError):
        handoff.accept()
    handoff.answer("the third", by=ANA)
    handoff.accept()

    assert not bodies(asking, "handoff.accepted")[0].would_ask


def test_the_same_question_is_answered_once_in_a_tree(asking: Relay) -> None:
    """A second child with the same question gets the first one's answer, and who gave it."""
    lead = asking.start("begin", by=ANA)
    first, second = (lead.hand_off("editor", task, items=[BLOCKING]) for task in ("one", "two"))
    with pytest.raises(HandoffAskedError):
        first.accept()
    first.answer("the third", by="user:bob")
    child = second.accept()
    assert child.baton is not None

    assert [("the third", "user:bob")] == [(known.answer, known.by) for known in child.baton.answers]


def test_a_worker_asks_under_its_lease(asking: Relay) -> None:
    """An asked handoff is given back, and claimed again after the answer."""
    lead = asking.start("begin", by=ANA)
    claims = [Claim("a", key="n", value="1"), Claim("b", key="n", value="2")]
    handoff = lead.hand_off("editor", "go", carrier=Carrier.WORKER, items=claims)
    lease = asking.claim(holder="w", lease_for=LONG)
    with pytest.raises(HandoffAskedError):
        asking.handoff(handoff.id).accept(lease=lease)
    assert None is asking.claim(holder="w", lease_for=LONG)
    handoff.answer("2")
    lease = asking.claim(holder="w", lease_for=LONG)

    assert 1 == asking.handoff(handoff.id).accept(lease=lease).attempt


def test_a_receiver_may_ask_by_hand(lead: LiveRun, relay: Relay) -> None:
    """An agent's own question is recorded as its own."""
    handoff = lead.hand_off("editor", "go")
    handoff.ask("before or after tax?")

    assert ("before or after tax?", State.ASKED) == (handoff.result().question, handoff.state())
    assert ("agent:editor", "asked") == (bodies(relay, "handoff.asked")[0].by, bodies(relay, "handoff.asked")[0].check)


@pytest.mark.parametrize("text", ["", " ", LONE_SURROGATE])
def test_questions_answers_and_reasons_say_something(lead: LiveRun, text: str) -> None:
    """An empty one, or one that is no text, is refused."""
    handoff = lead.hand_off("editor", "go")

    for act in (handoff.ask, handoff.decline):
        with pytest.raises(InvalidValueError):
            act(text)
    handoff.ask("which?")
    with pytest.raises(InvalidValueError):
        handoff.answer(text)
    assert State.ASKED is handoff.state()


def test_what_was_not_asked_is_not_answered(lead: LiveRun) -> None:
    """An answer without a question changes nothing."""
    with pytest.raises(IllegalTransitionError):
        lead.hand_off("editor", "go").answer("yes")


def test_a_decline_is_a_value_for_its_parent(lead: LiveRun, relay: Relay) -> None:
    """Somebody else's view of a declined handoff is an error; its parent reads the reason."""
    handoff = lead.hand_off("editor", "go")
    handoff.decline("I only test", code="wrong.skill")

    assert (State.DECLINED, "I only test", False) == (
        handoff.result().state,
        handoff.result().reason,
        handoff.result().delivered,
    )
    with pytest.raises(HandoffDeclinedError, match="I only test"):
        relay.handoff(handoff.id).accept()


def test_its_caller_may_ask_for_a_declined_one_again(lead: LiveRun, relay: Relay) -> None:
    """The same offer once more is a retry, and is recorded as one."""
    lead.hand_off("editor", "go").decline("not now")
    with lead.hand_off("editor", "go") as child:
        child.report("done")

    assert ("handoff.retried" in kinds(relay), 1) == (True, child.attempt)


def test_what_is_held_is_not_taken(lead: LiveRun) -> None:
    """Somebody has to approve first."""
    handoff = lead.hand_off("editor", "go", hold=True)

    with pytest.raises(HandoffHeldError):
        handoff.accept()


@pytest.mark.parametrize("carrier", Carrier)
def test_what_somebody_works_on_is_not_taken_twice(relay: Relay, lead: LiveRun, carrier: Carrier) -> None:
    """A second acceptance finds it running."""
    handoff = lead.hand_off("editor", "go", carrier=carrier)
    handoff.accept(lease=relay.claim(holder="w", lease_for=LONG))

    with pytest.raises(HandoffEndedError, match="is running"):
        handoff.accept()


@pytest.mark.parametrize("claimed", [False, True], ids=["while it waits", "while another has claimed it"])
def test_what_waits_for_a_worker_is_taken_under_a_lease(relay: Relay, lead: LiveRun, *, claimed: bool) -> None:
    """Without one, nobody would find out that whoever took it has died; nothing is recorded, and a worker takes it."""
    handoff = lead.hand_off("editor", "go", carrier=Carrier.WORKER, run=lambda _: "done")
    lease = relay.claim(holder="w", lease_for=LONG) if claimed else None
    for take in (handoff.accept, relay.handoff(handoff.id).accept, handoff.run, handoff.__enter__):
        with pytest.raises(InvalidValueError, match="lease"):
            take()
    lease = lease or relay.claim(holder="w", lease_for=LONG)

    assert ([], 1) == (bodies(relay, "handoff.accepted"), relay.handoff(handoff.id).accept(lease=lease).attempt)


def test_of_many_threads_one_takes_it(relay: Relay, lead: LiveRun) -> None:
    """The others are told that it is taken, not that something broke."""
    handoff = lead.hand_off("editor", "go")
    found = at_once(*[lambda: relay.handoff(handoff.id).accept().attempt] * 6)

    assert [1] == [answer for answer in found if isinstance(answer, int)]
    assert {HandoffEndedError} == {type(answer) for answer in found if not isinstance(answer, int)}


def test_a_lost_lease_takes_nothing(relay: Relay, lead: LiveRun) -> None:
    """A worker whose lease ran out and was swept cannot begin; whoever claims it next can."""
    handoff = lead.hand_off("editor", "go", carrier=Carrier.WORKER)
    lost = relay.claim(holder="slow", lease_for=AT_ONCE)
    relay.sweep()
    lease = relay.claim(holder="fast", lease_for=LONG)

    with pytest.raises(LeaseLostError):
        relay.handoff(handoff.id).accept(lease=lost)
    assert 1 == relay.handoff(handoff.id).accept(lease=lease).attempt


def test_what_this_process_runs_is_not_taken_over_by_itself(places: Places) -> None:
    """A resumed lead takes over what its dead process ran, and not what it began itself."""
    dead = places.relay().start("begin", by=ANA)
    left = dead.hand_off("editor", "go").accept()
    lead = places.relay().resume(dead.id)
    taken = lead.hand_off("editor", "go").accept()
    with pytest.raises(HandoffEndedError, match="is running"):
        lead.hand_off("editor", "go").accept()
    taken.report("done")
    taken.close()

    assert (1, 2) == (left.attempt, taken.attempt)


@pytest.mark.parametrize("depth", [1, 3])
def test_depth_is_counted_over_the_signed_lineage(places: Places, depth: int) -> None:
    """A chain that is deeper than the receiver's policy allows is a problem of the baton, whoever let it go."""
    relay, strict = places.relay(), places.relay(policy=HandoffPolicy(max_depth=2, oldest=timedelta(days=1)))
    run = relay.start("begin", by=ANA)
    for number in range(depth - 1):
        run = run.hand_off(f"agent-{number}", "go on").accept()
    last = run.hand_off("last", "go on", carrier="worker").id
    lease = strict.claim(holder="w", lease_for=timedelta(minutes=1))
    strict.handoff(last).accept(lease=lease)

    problems = bodies(relay, "handoff.accepted")[-1].problems
    assert (depth >= 2) is any("depth" in problem or "deep" in problem for problem in problems)
