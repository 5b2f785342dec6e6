"""Held calls of native agents: a person approves, and the work goes on from the record."""

from typing import Any

import pytest

from batonpass import tool
from batonpass.agents import Crew, HandoffPolicy, RunResult
from batonpass.errors import InvalidValueError
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import OpenQuestion
from batonpass.model.bodies.body import RunSuspended
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.agents.house import House, noting, run_async

ANA = "user:ana"


class Till:
    """Agents on a relay whose policy is enforced: looking is free, and a payment waits for a person."""

    def __init__(self) -> None:
        self.house = House()
        self.house.relay = Relay(MemoryStore(), policy=Policy(enforce=True, proven=False))
        self.done: list[str] = []
        self.asked: list[Any] = []  # the turns of the models

    def tools(self) -> list[Any]:
        """Return a tool that reads and one whose calls cannot be undone."""

        @tool("look", reads=True)
        def look() -> str:
            """Look up the sum."""
            self.done.append("look")
            return "19.00"

        @tool("pay", reversible=False)
        def pay(to: str) -> str:
            """Pay somebody."""
            self.done.append(f"pay {to}")
            return f"paid {to}"

        return [look, pay]

    def clerk(self, turn: Any) -> Any:  # noqa: ANN401 - a turn
        """Look, pay, and claim that it is done, whatever came of it."""
        self.asked.append(turn)
        if turn.prompt.startswith("Decided since then") and not turn.returned:
            return {"pay": {"to": "bob"}} if "approved" in turn.prompt else "nobody was paid"
        steps: list[Any] = [{"look": {}}, {"pay": {"to": "bob"}}]
        told = dict(turn.returned)
        if told.get("pay") == "paid bob":
            return "bob is paid"
        return steps[len(turn.returned)] if len(turn.returned) < len(steps) else "all done, bob is paid"

    def run(self, name: str = "clerk", **options: Any) -> RunResult:  # noqa: ANN401 - as AgentRunner.run
        """Let an agent answer."""
        agent = self.house.registry.get(name)
        result: RunResult = run_async(agent.runner.run(agent.definition, "Pay bob", by=ANA, **options))
        return result

    def resume(self, result: RunResult, name: str = "clerk") -> RunResult:
        """Go on with a run."""
        agent = self.house.registry.get(name)
        again: RunResult = run_async(agent.runner.resume(agent.definition, result.run))
        return again

    def state(self, result: RunResult) -> RunState:
        """Return the state of a root run."""
        with self.house.relay.store.view() as view:
            return view.get_run(result.run).state

    def suspensions(self) -> list[RunSuspended]:
        """Return the receipts of roots that were left open."""
        with self.house.relay.store.view() as view:
            found = [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery(kind="run.suspended"))]
        return [body for body in found if isinstance(body, RunSuspended)]

    def led(self) -> None:
        """Register a clerk, and a lead that hands to it and tells what came back."""

        def lead(turn: Any) -> Any:  # noqa: ANN401 - a turn
            if turn.prompt.startswith("Decided since then"):
                return f"told: {turn.prompt}"
            return "I have paid bob" if turn.returned else {"handoff_to_clerk": {"task": "Pay bob"}}

        self.house.agent("clerk", self.clerk, *self.tools())
        self.house.agent("lead", lead, self.house.to("clerk"))


@pytest.fixture
def till() -> Till:
    """Return a clerk who may look, and whose payments are held."""
    made = Till()
    made.house.agent("clerk", made.clerk, *made.tools())
    return made


def test_what_a_model_says_while_its_call_is_held_is_no_result(till: Till) -> None:
    """It claims to have paid. The result says what waits and how to approve it, and the root stays open."""
    result = till.run()
    [held] = result.held

    assert (State.HELD, None, ["look"]) == (result.state, result.report, till.done)
    assert ("pay", '{"to": "bob"}', f"batonpass handoff approve {held.id[-6:]}") == (
        held.name,
        held.words,
        held.command,
    )
    assert held.command in result.output
    assert "all done" not in result.output
    assert (RunState.OPEN, [held.id]) == (till.state(result), [body.call for body in till.suspensions()])
    till.house.relay.verify()


@pytest.mark.parametrize("key", [None, "payment-1"], ids=["resumed by its id", "run again with its key"])
def test_an_approved_call_is_made_once_and_the_work_goes_on(till: Till, key: str | None) -> None:
    """It goes on in the same run: what was looked up stays looked up, and exactly the approved call is made."""
    first = till.run(key=key)
    till.house.relay.held_call(first.held[0].id).approve(by=ANA)
    again = till.resume(first) if key is None else till.run(key=key)

    assert ("bob is paid", State.COMPLETED, first.run) == (again.output, again.state, again.run)
    assert (["look", "pay bob"], RunState.COMPLETED) == (till.done, till.state(again))
    assert 'user:ana approved pay {"to": "bob"}. It was not made yet' in till.asked[-2].prompt
    till.house.relay.verify()


def test_a_denied_call_is_told_and_never_made(till: Till) -> None:
    """The model answers again, knowing it, and that answer is the result."""
    first = till.run()
    till.house.relay.held_call(first.held[0].id).deny(by=ANA, reason="not him")
    again = till.resume(first)

    assert ("nobody was paid", State.COMPLETED, ["look"]) == (again.output, again.state, till.done)
    till.house.relay.verify()


def test_who_resumes_too_early_is_told_what_waits_and_no_model_is_asked(till: Till) -> None:
    """Nothing has changed, so nothing is done."""
    first = till.run()
    asked = len(till.asked)
    again = till.resume(first)

    assert (State.HELD, first.held, asked) == (again.state, again.held, len(till.asked))
    till.house.relay.held_call(first.held[0].id).approve(by=ANA)
    assert ("bob is paid", ["look", "pay bob"]) == (till.resume(again).output, till.done)


def test_an_approval_while_the_model_goes_on_is_used_at_once(till: Till) -> None:
    """It was approved before the model answered: the model is told, and nobody has to resume."""
    relay = till.house.relay

    def approved(turn: Any) -> Any:  # noqa: ANN401 - a turn
        if len(turn.returned) == 2 and till.done == ["look"]:
            with relay.store.view() as view:
                [held] = view.find_waiting_calls()
            relay.held_call(held.call).approve(by=ANA)
        return till.clerk(turn)

    till.house.agent("quick", approved, *till.tools())
    result = till.run("quick")

    assert ("bob is paid", ["look", "pay bob"], []) == (result.output, till.done, till.suspensions())


def test_a_lead_waits_with_whoever_it_handed_to() -> None:
    """The attempt ends as suspended, the lead's claim is no result, and after the approval both go on."""
    till = Till()
    till.led()
    first = till.run("lead")
    [held] = first.held
    handoff = till.house.relay.handoff(held.id)

    assert (State.HELD, State.HELD, "clerk", "Pay bob") == (first.state, handoff.state(), held.name, held.words)
    assert [handoff.id] == [body.awaits for body in till.suspensions()]
    handoff.approve(by=ANA)
    again = till.resume(first, "lead")

    assert (State.COMPLETED, 2, ["look", "pay bob"]) == (handoff.state(), handoff.result().attempt, till.done)
    assert (first.run, True) == (again.run, "bob is paid" in again.output)
    till.house.relay.verify()


def test_a_lead_below_a_lead_stops_too() -> None:
    """Suspension goes up through native agents: every attempt on the way is over, and each goes on."""
    till = Till()
    till.led()

    def chief(turn: Any) -> Any:  # noqa: ANN401 - a turn
        if turn.prompt.startswith("Decided since then"):
            return f"heard: {turn.prompt}"
        return "it is paid" if turn.returned else {"handoff_to_lead": {"task": "Have bob paid"}}

    till.house.agent("chief", chief, till.house.to("lead"))
    first = till.run("chief")
    [held] = first.held
    with till.house.relay.store.view() as view:
        states = {known.to: known.state for known in view.find_handoffs()}

    assert {"lead": State.HELD, "clerk": State.HELD} == states
    assert "clerk" == till.house.relay.handoff(held.id).info().to
    till.house.relay.handoff(held.id).approve(by=ANA)
    again = till.resume(first, "chief")

    assert (["look", "pay bob"], True) == (till.done, "bob is paid" in again.output)
    till.house.relay.verify()


def test_a_denied_handoff_is_told_to_the_lead() -> None:
    """What a person denied is not asked for again, and the lead's next answer is the result."""
    till = Till()
    till.led()
    first = till.run("lead")
    till.house.relay.handoff(first.held[0].id).deny(by=ANA, reason="not him")
    again = till.resume(first, "lead")

    assert (State.COMPLETED, ["look"], True) == (again.state, till.done, "user:ana denied the handoff" in again.output)


def test_a_crew_waits_for_a_member() -> None:
    """The crew has not failed; with its key it goes on, and who had delivered is not asked again."""
    till = Till()
    begun: list[str] = []
    till.house.agent("first", noting(begun, "ready"))
    till.house.agent("clerk", till.clerk, *till.tools())
    crew = Crew.pipeline(["first", "clerk"], registry=till.house.registry, relay=till.house.relay)
    held = run_async(crew.run("Pay bob", by=ANA, key="k"))
    till.house.relay.handoff(held.results[1].handoff).approve(by=ANA)
    done = run_async(crew.run("Pay bob", by=ANA, key="k"))

    assert (State.HELD, False, True) == (held.results[1].state, held.delivered, done.delivered)
    assert (held.run, ["look", "pay bob"], 1) == (done.run, till.done, len(begun))
    till.house.relay.verify()


def test_a_crew_without_a_key_is_resumed() -> None:
    """Its root is named by its id, or is the last open one; a run of somebody else is not taken for it."""
    till = Till()
    till.house.agent("clerk", till.clerk, *till.tools())
    crew = Crew.pipeline(["clerk"], registry=till.house.registry, relay=till.house.relay)
    held = run_async(crew.run("Pay bob", by=ANA))
    [waiting] = held.waiting
    till.house.relay.handoff(waiting.handoff).approve(by=ANA)
    done = run_async(crew.resume())

    assert (held.run, True, ()) == (done.run, done.delivered, done.waiting)
    assert ["look", "pay bob"] == till.done
    other = till.run()
    with pytest.raises(InvalidValueError, match="a run of clerk"):
        run_async(crew.resume(other.run))


def test_a_crew_waits_for_an_answer() -> None:
    """A member that asks has not failed. Its question stays, and after the answer the crew goes on."""
    house = House()
    begun: list[str] = []
    house.agent("first", noting(begun, "ready"))
    crew = Crew.pipeline(["first"], registry=house.registry, relay=house.relay, policy=HandoffPolicy(asks=True))
    question = OpenQuestion("Which colour is the box?", blocking=True)
    [waiting] = run_async(crew.run("Paint the box", by=ANA, items=[question])).waiting
    asked = house.relay.handoff(waiting.handoff)

    assert (State.ASKED, []) == (asked.state(), begun)
    assert "Which colour is the box?" in (waiting.question or "")
    asked.answer("The box is blue.", by=ANA)
    done = run_async(crew.resume())

    assert (State.COMPLETED, True, 1) == (asked.state(), done.delivered, len(begun))
    house.relay.verify()
