"""Many at once: a thousand agents, fifty runs in one event loop, and cancellations that leave nothing hanging."""

import asyncio
import time

import pytest

from batonpass.agents import AgentDefinition, HandoffPolicy
from batonpass.model.base.lifecycle import State
from tests.integration.agents.messages_api import Asked, Said, Silence, Text, Use, serving
from tests.integration.agents.support import PATIENCE, House, run_async

CROWD = 1000
AT_ONCE = 50


def script(asked: Asked) -> Said:
    """Support hands to the agent that the user names; that one answers with its own name."""
    if "You are support" not in asked.system:
        return Use("report_back", {"result": f"I am {asked.system.partition('You are ')[2].partition('.')[0]}"})
    number = asked.messages[0]["content"][0]["text"].rpartition(" ")[2]
    if asked.answers == 0:
        return Use(f"handoff_to_agent-{number}", {"task": f"Say who you are, {number}"})
    return Text(str(asked.results[0]["content"]))


@pytest.mark.slow
def test_a_thousand_agents_and_fifty_runs_at_once() -> None:
    """Each run reaches the agent that it names by its stable id; all is recorded, and the ledger verifies."""
    with serving(script) as api:
        house = House(api, policy=HandoffPolicy(max_depth=3))
        for number in range(CROWD):
            house.agent(f"agent-{number}")
        chosen = range(0, CROWD, CROWD // AT_ONCE)
        runner = house.runner(*(house.to(f"agent-{number}") for number in chosen))

        async def ask(number: int) -> str:
            tools = [f"handoff_to_agent-{number}"]
            support = AgentDefinition(name="support", model="m", system_prompt="You are support.", tools=tools)
            return (await runner.run(support, f"Who is {number}")).output

        async def main() -> list[str]:
            return await asyncio.gather(*map(ask, chosen))

        began = time.perf_counter()
        answers = run_async(main)
        took = time.perf_counter() - began
        with house.relay.store.view() as view:
            states = [handoff.state for handoff in view.find_handoffs()]
        house.relay.verify()

    print(f"{AT_ONCE} runs with a handoff each: {took:.2f} s")  # noqa: T201 - the figure
    assert (CROWD, AT_ONCE, {State.COMPLETED}) == (len(house.registry), len(states), set(states))
    assert [True] * AT_ONCE == [
        f"I am agent-{number}" in answer for number, answer in zip(chosen, answers, strict=True)
    ]


def test_a_cancelled_run_leaves_its_handoffs_cancelled() -> None:
    """Whoever waits is cancelled while a grandchild's model is silent: every handoff below says so, none only began."""

    def silent(asked: Asked) -> Said:
        if "You are payment" in asked.system:
            return Silence()
        to = "billing" if "You are support" in asked.system else "payment"
        return Use(f"handoff_to_{to}", {"task": f"The part of {to}"})

    with serving(silent) as api:
        house = House(api)
        house.agent("payment")
        house.agent("billing", tools=[house.to("payment")])
        house.agent("support", tools=[house.to("billing")])

        async def main() -> list[str]:
            task = asyncio.create_task(house.ask("support", "Where is my money?"))
            await asyncio.to_thread(api.reached.wait, PATIENCE)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            return await house.kinds()

        kinds = run_async(main)
        with house.relay.store.view() as view:
            states = [handoff.state for handoff in view.find_handoffs()]
            runs = {run.agent: run.state.value for run in view.find_runs()}
        house.relay.verify()

    assert ([State.CANCELLED] * 2, 2) == (states, kinds.count("handoff.cancelled"))
    assert {"support": "cancelled", "billing": "cancelled", "payment": "cancelled"} == runs


def test_a_timeout_of_the_caller_is_a_cancellation() -> None:
    """`asyncio.timeout` around a run ends it like any other cancellation."""
    with serving(
        lambda asked: Silence() if "You are slow" in asked.system else Use("handoff_to_slow", {"task": "Go"})
    ) as api:
        house = House(api)
        house.agent("slow")
        house.agent("support", tools=[house.to("slow")])

        async def main() -> list[str]:
            async def ask() -> None:
                async with asyncio.timeout(None) as patience:
                    limits.append(patience)
                    await house.ask("support", "Quick!")

            limits: list[asyncio.Timeout] = []
            task = asyncio.create_task(ask())
            await asyncio.to_thread(api.reached.wait, PATIENCE)
            limits[0].reschedule(0)
            await asyncio.wait({task})
            assert isinstance(task.exception(), TimeoutError)
            return await house.kinds("handoff")

        kinds = run_async(main)

    assert ["handoff.initiated", "handoff.accepted", "handoff.cancelled"] == kinds
