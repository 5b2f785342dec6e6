"""Tool calls: recorded before and after, finished once, and never lost."""

import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from batonpass import Brief
from batonpass.errors import (
    CallHeldError,
    CallInDoubtError,
    CallReplayError,
    ConstraintViolatedError,
    ContentErasedError,
    InvalidValueError,
    NotFoundError,
)
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.runtime.faults import code_of
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.kinds import Mode, Settlement
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.items import Constraint
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, begin_only, bodies, receipts, words


class World:
    """What the tools of a test did, outside of every record."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.faults: list[BaseException] = []

    def mail(self, to: str) -> str:
        """Send a mail; nobody can take it back."""
        if self.faults:
            raise self.faults.pop()
        self.done.append(to)
        return f"sent to {to}"

    def failing(self, *faults: BaseException) -> "World":
        """Let the next mails fail."""
        self.faults.extend(faults)
        return self


@pytest.fixture
def world() -> World:
    """Return a world in which nothing has happened."""
    return World()


@pytest.fixture
def handoff(lead: LiveRun) -> LiveHandoff:
    """Return a handoff that nobody has taken."""
    return lead.hand_off("worker", "send the mails")


def again(lead: LiveRun, handoff: LiveHandoff, run: LiveRun) -> LiveRun:
    """Let an attempt fail and return the next one."""
    run.fail(ValueError("it died"))
    retried = lead.hand_off("worker", "send the mails")
    assert handoff.id == retried.id
    return retried.accept()


def test_the_request_is_there_before_the_call_and_the_outcome_after(lead: LiveRun, relay: Relay) -> None:
    """A process that dies in a call leaves a request without an outcome, never an effect without a request."""
    seen = lead.call(lambda: len(bodies(relay, "tool.requested")) - len(bodies(relay, "tool.completed")))

    assert (1, 1) == (seen, len(bodies(relay, "tool.completed")))


def test_a_finished_call_is_not_made_again(lead: LiveRun, handoff: LiveHandoff, world: World) -> None:
    """The next attempt gets the recorded results, in the order in which equal calls were made."""
    run = handoff.accept()
    first = [run.call(world.mail, "bob"), run.call(world.mail, "bob"), run.call(world.mail, "eve")]
    run = again(lead, handoff, run)
    second = [run.call(world.mail, "eve"), run.call(world.mail, "bob"), run.call(world.mail, "bob")]

    assert (["bob", "bob", "eve"], sorted(first)) == (world.done, sorted(second))
    run.call(world.mail, "bob")
    assert ["bob", "bob", "eve", "bob"] == world.done


def test_a_call_that_was_tried_until_it_worked_is_made_once(lead: LiveRun, handoff: LiveHandoff, world: World) -> None:
    """Tries that failed are not counted: the next attempt recognises the one that worked."""
    run = handoff.accept()
    world.failing(OSError("busy"), OSError("busy"))
    for _ in range(2):
        with pytest.raises(OSError, match="busy"):
            run.call(world.mail, "bob")
    run.call(world.mail, "bob")
    run = again(lead, handoff, run)

    assert ("sent to bob", ["bob"]) == (run.call(world.mail, "bob"), world.done)


def test_a_call_in_doubt_is_put_before_whoever_goes_on(
    lead: LiveRun, handoff: LiveHandoff, world: World, relay: Relay
) -> None:
    """It is not made, the refusal is recorded, and asking again changes nothing."""
    run = handoff.accept()
    doubt = begin_only(run, world.mail, "bob")
    run = again(lead, handoff, run)
    for _ in range(2):
        with pytest.raises(CallInDoubtError, match=doubt):
            run.call(world.mail, "bob")

    assert ([], [doubt]) == (world.done, [call.id for call in run.earlier.in_doubt])
    assert ["call.in-doubt"] * 2 == [body.rule for body in bodies(relay, "tool.denied")]


@pytest.mark.parametrize(
    ("settlement", "answer", "done"),
    [(Settlement.REPEAT, "sent to bob", ["bob"]), (Settlement.SKIP, None, [])],
    ids=["it is made once more", "it is taken as done"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_doubt_is_settled_by_a_person(  # noqa: PLR0917 - three fixtures and a table
    lead: LiveRun,
    handoff: LiveHandoff,
    world: World,
    settlement: Settlement,
    answer: object,
    done: list[str],
    when: str,
) -> None:
    """Once somebody decided, that very call goes on, whether the run had met the doubt before or not."""
    run = handoff.accept()
    doubt = begin_only(run, world.mail, "bob")
    run = again(lead, handoff, run)
    if when == "after":
        with pytest.raises(CallInDoubtError):
            run.call(world.mail, "bob")
    handoff.settle(doubt, settlement, by=ANA, reason="looked into the mailbox")

    assert (answer, done) == (run.call(world.mail, "bob"), world.done)


def test_only_what_is_in_doubt_is_settled(handoff: LiveHandoff, world: World) -> None:
    """Nobody decides about calls that have an outcome, or never were."""
    run = handoff.accept()
    run.call(world.mail, "bob")
    (finished,) = run._holding.effects

    with pytest.raises(NotFoundError, match="call in doubt"):
        run.settle(finished, Settlement.SKIP)


@pytest.mark.parametrize("how", ["idempotent", "reads"])
def test_what_may_be_repeated_is_repeated(lead: LiveRun, handoff: LiveHandoff, world: World, how: str) -> None:
    """A tool that is idempotent by key, or only reads, is not held up by a doubt."""
    act = tool("act", **{how: True})(partial(world.mail))  # type: ignore[call-overload]
    run = handoff.accept()
    begin_only(run, act, "bob")

    assert "sent to bob" == again(lead, handoff, run).call(act, "bob")


def test_a_retried_idempotent_call_has_the_key_of_the_first(lead: LiveRun, handoff: LiveHandoff, relay: Relay) -> None:
    """A service that recognises repeated requests sees one request."""
    act = tool("act", idempotent=True)(lambda to: to)
    run = handoff.accept()
    begin_only(run, act, "bob")
    again(lead, handoff, run).call(act, "bob")

    assert 1 == len({body.key for body in bodies(relay, "tool.requested")})


@pytest.mark.filterwarnings("ignore::batonpass.errors.handoff.ReusedResultWarning")
def test_a_finished_handoff_only_replays(lead: LiveRun, handoff: LiveHandoff, world: World) -> None:
    """What it did is given back; what it never did is refused; nothing is recorded."""
    with handoff as run:
        run.call(world.mail, "bob")
    with lead.hand_off("worker", "send the mails") as replayed:
        assert "sent to bob" == replayed.call(world.mail, "bob")
        with pytest.raises(CallReplayError, match="never called mail"):
            replayed.call(world.mail, "eve")

    assert (["bob"], 1) == (world.done, handoff.info().attempt)


def test_a_call_with_an_object_that_says_nothing_of_itself_is_recognised(
    lead: LiveRun, handoff: LiveHandoff, world: World
) -> None:
    """Where an argument lies in memory is not what was called: the next attempt gets the result of the first."""

    class Session:
        """An object without a form, and without a repr of its own."""

    act = tool("act")(lambda _, to: world.mail(to))
    sessions = [Session(), Session()]
    run = handoff.accept()
    first = run.call(act, sessions[0], "bob")
    second = again(lead, handoff, run).call(act, sessions[1], "bob")

    assert (["bob"], "sent to bob", "sent to bob") == (world.done, first, second)


@pytest.mark.parametrize(
    "error", [ValueError("\ud800\0"), StopIteration(), OSError(), ExceptionGroup("g", [OSError()])]
)
def test_whatever_error_a_tool_raises_is_recorded_and_raised(lead: LiveRun, relay: Relay, error: Exception) -> None:
    """A call that failed has an outcome, whatever its words are."""

    def act() -> None:
        raise error

    with pytest.raises(type(error)):
        lead.call(act)

    assert [code_of(error)] == [body.error for body in bodies(relay, "tool.failed")]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (lambda _: Decimal("0.0000012"), (2, ())),
        (lambda _: 3, (3_000_000, ())),
        (lambda _: -1, (0, ())),
        (lambda _: 10**30, (2**53 - 1, ())),
        (lambda _: math.nan, (0, ("cost.unknown",))),
        (lambda _: "much", (0, ("cost.unknown",))),
        (lambda _: 1 / 0, (0, ("cost.unknown",))),
    ],
    ids=["a fraction", "a number", "less than nothing", "too much", "no number", "a word", "an error"],
)
def test_a_cost_never_keeps_a_call_from_its_outcome(
    lead: LiveRun, relay: Relay, cost: Callable[[Any], Any], expected: tuple[int, tuple[str, ...]]
) -> None:
    """The call was made: what it cost, or that nobody can tell, is recorded with it."""
    lead.call(tool("act", cost=cost)(lambda: "done"))
    (completed,) = bodies(relay, "tool.completed")

    assert expected == (completed.cost, completed.flags)


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), math.nan, ("a",)], ids=["a set", "an object", "no number", "a tuple"]
)
def test_a_result_without_a_form_stops_the_next_attempt_and_not_this_one(
    lead: LiveRun, handoff: LiveHandoff, value: object
) -> None:
    """The attempt gets the value itself; the next one is told how to keep it, and nothing is done twice."""
    done = []
    act = tool("act")(lambda: done.append(1) or value)  # type: ignore[func-returns-value]
    run = handoff.accept()

    assert value is run.call(act)
    with pytest.raises(InvalidValueError, match="encode= and decode="):
        again(lead, handoff, run).call(act)
    assert [1] == done


def test_a_result_that_was_erased_is_not_made_up(
    lead: LiveRun, handoff: LiveHandoff, relay: Relay, world: World
) -> None:
    """The next attempt neither gets it nor does it again."""
    run = handoff.accept()
    run.call(world.mail, "bob")
    relay.admin.erase([receipts(relay, "tool.completed")[0].content["result"].id], by=ANA, reason="private")

    with pytest.raises(ContentErasedError):
        again(lead, handoff, run).call(world.mail, "bob")
    assert ["bob"] == world.done


@pytest.mark.parametrize("fails", [False, True], ids=["it works", "it fails"])
def test_the_late_outcome_of_a_call_is_kept_as_evidence(
    relay: Relay, lead: LiveRun, handoff: LiveHandoff, *, fails: bool
) -> None:
    """A run that was cancelled in a call delivers nothing; what became of the call stands in the handoff's stream."""
    run = handoff.accept()

    def act() -> str:
        relay.handoff(handoff.id).cancel(by=ANA, reason="not needed")
        if fails:
            raise ValueError("failed all the same")
        return "done all the same"

    with pytest.raises(Exception, match="closed"):
        run.call(act)
    (late,) = receipts(relay, "handoff.late")

    assert "all the same" in words(relay, late, "message" if fails else "result")
    assert (lead.id, not fails) == (late.root, late.body.completed)  # type: ignore[union-attr]


class TestWhatWouldStopACall:
    """An enforced run is stopped; an observed one goes on, and it is written down."""

    @pytest.fixture(params=[Mode.OBSERVED, Mode.ENFORCED])
    def mode(self, request: pytest.FixtureRequest) -> Mode:
        """Return how the run is held to what it was granted."""
        return Mode(request.param)

    @pytest.fixture
    def strict(self, relay: Relay, mode: Mode) -> LiveRun:
        """Return a root that must not go above three sigma."""
        limit = Constraint(key="sigma", operator="<=", value="3", binds_to="call:find.sigma")
        return relay.start("find them", by=ANA, items=[limit], mode=mode)

    def outcome(self, relay: Relay) -> list[object]:
        """Return what was flagged and what was denied."""
        flagged = [body.flags for body in bodies(relay, "tool.requested") if body.flags]
        return [*flagged, *(body.rule for body in bodies(relay, "tool.denied"))]

    def test_a_constraint_on_an_argument(self, strict: LiveRun, relay: Relay, mode: Mode) -> None:
        """A typed constraint is checked at the call."""
        find = tool("find")(lambda sigma: sigma)
        strict.call(find, 3)
        if mode is Mode.ENFORCED:
            with pytest.raises(ConstraintViolatedError, match="sigma <= 3"):
                strict.call(find, 4)
        else:
            strict.call(find, 4)

        assert [("would_deny.constraint",) if mode is Mode.OBSERVED else "constraint"] == self.outcome(relay)

    def test_a_relaxed_constraint(self, strict: LiveRun, relay: Relay) -> None:
        """What somebody entitled has relaxed binds no more."""
        (limit,) = strict.notes
        strict.relax(limit, by=ANA, reason="it is fine")
        strict.call(tool("find")(lambda sigma: sigma), 99)

        assert [] == self.outcome(relay)

    @pytest.mark.parametrize(
        "budget", [Budget(calls=1), Budget(seconds=60), Budget(cost=2_000_000)], ids=["calls", "seconds", "cost"]
    )
    def test_a_budget(self, places: Places, mode: Mode, budget: Budget) -> None:
        """One call more than the offer allows, or one after its time or its money is spent."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        handoff = relay.start("begin", by=ANA, mode=mode).hand_off("worker", "count", brief=Brief(budget=budget))
        if handoff.state() is State.HELD:
            handoff.approve(by=ANA)  # enforced, money of its own has to be confirmed first
        run = handoff.accept()

        @tool("work", cost=lambda _: 2)
        def work(_: str) -> None:
            clock.tick(timedelta(minutes=1))

        run.call(work, "a")
        if mode is Mode.ENFORCED:
            with pytest.raises(ConstraintViolatedError, match="at most"):
                run.call(work, "b")
        else:
            run.call(work, "b")

        assert [("would_deny.budget",) if mode is Mode.OBSERVED else "budget"] == self.outcome(relay)

    def test_a_target_that_an_earlier_attempt_changed(self, strict: LiveRun, relay: Relay, mode: Mode) -> None:
        """A call in other words on the same target is not taken for a new one."""
        write = tool("write", target="path")(lambda path, text: (path, text))
        handoff = strict.hand_off("worker", "write it")
        run = handoff.accept()
        run.call(write, "a", "one")
        run.fail(ValueError("died"))
        handoff.retry()
        run = handoff.accept()
        if mode is Mode.ENFORCED:
            with pytest.raises(CallHeldError, match="earlier attempt changed"):
                run.call(write, "a", "one, reworded")
        else:
            run.call(write, "a", "one, reworded")
        run.call(write, "b", "another")

        assert [("would_hold.target-changed",) if mode is Mode.OBSERVED else "target-changed"] == self.outcome(relay)
