"""Keys of native agents: twice is once, and a run whose process is gone goes on."""

import asyncio
from typing import Any

import pytest

from batonpass.agents import AgentRunner, RunResult
from batonpass.errors import InvalidValueError, KeyReusedError
from tests.unit.agents.house import House, run_async


def counted() -> tuple[House, list[str], list[str]]:
    """Return an agent that sends a mail and answers; what its model was told, and what it sent."""
    house, asked, sent = House(), list[str](), list[str]()

    def send(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        asked.append(turn.known)
        if turn.prompt == "fail" and turn.returned and len(asked) < 3:
            raise RuntimeError("the provider is gone")
        return turn.returned[-1][1] if turn.returned else {"send": {"to": "ana"}}

    house.agent("support", support, send)
    return house, asked, sent


def answer(house: House, words: str, **options: Any) -> RunResult:  # noqa: ANN401 - as AgentRunner.run
    """Return the whole result."""
    agent = house.registry.get("support")
    result: RunResult = run_async(agent.runner.run(agent.definition, words, **options))
    return result


def test_the_same_request_twice_is_answered_once() -> None:
    """The second answer is the first: no model is asked, no call is made, and the result says so."""
    house, asked, sent = counted()
    first, again = (answer(house, "go", key="mail-1", session_id="s") for _ in range(2))

    assert (first.output, first.run, first.report, "s") == (again.output, again.run, again.report, again.session_id)
    assert (False, True, 2, ["ana"]) == (first.reused, again.reused, len(asked), sent)
    house.relay.verify()


def test_two_tasks_of_one_process_are_one() -> None:
    """Two that ask at the same moment get one answer."""
    house, asked, sent = counted()
    agent = house.registry.get("support")

    async def main() -> list[RunResult]:
        return list(await asyncio.gather(*(agent.runner.run(agent.definition, "go", key="k") for _ in range(3))))

    results: list[RunResult] = run_async(main())
    assert (1, 2, ["ana"]) == (len({result.run for result in results}), len(asked), sent)


def test_other_words_under_the_same_key_are_refused() -> None:
    """A key is for one request."""
    house, _, _ = counted()
    answer(house, "go", key="k")

    with pytest.raises(KeyReusedError, match="what is asked for"):
        answer(house, "go away", key="k")


def test_after_a_failure_the_model_is_told_what_was_done() -> None:
    """A run that failed is over; the next one under its key is told which calls it finished."""
    house, asked, _ = counted()
    with pytest.raises(RuntimeError):
        answer(house, "fail", key="k")
    answer(house, "fail", key="k")

    assert "Done by earlier attempts; do not do it again" in asked[2]
    assert 'send {"to": "ana"}' in asked[2]


def test_a_run_whose_process_is_gone_is_resumed_by_its_id() -> None:
    """Its finished calls are kept, and it is closed as one run."""
    house, asked, sent = counted()
    gone = house.relay.start("go", by="user:ana", agent="support")
    gone.call(house.registry.get("support").runner._executor.registry.get("send").function, to="ana")
    agent = house.registry.get("support")
    result: RunResult = run_async(agent.runner.resume(agent.definition, gone.id))

    assert (gone.id, "sent to ana", ["ana"]) == (result.run, result.output, sent)
    assert 'send {"to": "ana"}' in asked[0]
    house.relay.verify()


def test_another_agent_does_not_resume_it() -> None:
    """Whoever goes on must be who began."""
    house, _, _ = counted()
    other = house.agent("billing", lambda _: "x")
    house.relay.start("go", by="user:ana", agent="support")
    runner: AgentRunner = house.registry.get("billing").runner

    with pytest.raises(InvalidValueError, match="is a run of support"):
        run_async(runner.resume(other))


def test_a_result_has_a_value_for_programs() -> None:
    """In a session a model may report; what it reports as a value is JSON, and without one the answer is the value."""
    house = House()
    report = {"report_back": {"result": "paid", "value": {"sum": 19}}}
    house.agent("support", lambda turn: report if turn.prompt == "how much?" else "yes")

    assert {"sum": 19} == answer(house, "how much?", session_id="s").value
    assert "yes" == answer(house, "is it paid?").value
