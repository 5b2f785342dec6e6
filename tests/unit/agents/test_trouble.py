"""Agents in trouble: a tool that raises or returns too much, a model without an end. The lead sees what happened."""

from typing import Any

import pytest

from batonpass.agents import RunnerConfig
from batonpass.errors import TurnsExhaustedError
from batonpass.handoff.tools.declaration import tool
from tests.unit.agents.house import House

HUGE = 10_000_000


def handed(worker: Any, *tools: Any) -> tuple[House, str]:  # noqa: ANN401 - a script, functions
    """Return the house, and what its lead was told of a worker."""
    house = House(max_iterations=6)
    house.agent("worker", worker, *tools)
    house.agent(
        "lead",
        lambda turn: turn.returned[0][1] if turn.returned else {"handoff_to_worker": {"task": "Do it"}},
        house.to("worker"),
    )
    said = house.ask("lead", "Do it well", by="user:ana")
    house.relay.verify()
    return house, said


def broken() -> str:
    """Break."""
    raise OSError("no such host")


def test_a_worker_whose_tool_always_raises_fails_with_a_sentence() -> None:
    """It tries until its answers are used up; each call is recorded as failed, and its lead reads why it ended."""
    house, said = handed(lambda _: {"broken": {}}, broken)

    assert "worker gave back nothing" in said
    assert "worker did not finish within 6 answers of its model" in said
    assert ["handoff.failed: worker failed: handoff.turns_exhausted"] == house.told("handoff.failed")
    assert 6 == sum("no such host" in line for line in house.told("tool.failed"))


def test_a_root_without_an_end_is_recorded_and_raised() -> None:
    """The caller gets our error, not the framework's, and the run has failed with the same words."""
    house = House(max_iterations=RunnerConfig().max_iterations)
    house.agent("alone", lambda _: {"broken": {}}, broken)

    with pytest.raises(TurnsExhaustedError, match="in 10 answers"):
        house.ask("alone", "go")
    with house.relay.store.view() as view:
        assert ["failed"] == [run.state for run in view.find_runs()]
    assert "did not finish" in house.told("run.closed")[0]


@pytest.mark.parametrize("external", [False, True], ids=["ours", "from outside"])
def test_ten_megabytes_are_recorded_and_their_beginning_is_shown(*, external: bool) -> None:
    """The model gets what fits and a sentence about the rest, and goes on; the record has all of it."""
    seen: list[str] = []

    @tool("fetch", reads=True, external=external)
    def fetch() -> str:
        """Fetch."""
        return "x" * HUGE

    def worker(turn: Any) -> Any:  # noqa: ANN401 - a turn
        seen.extend(words for _, words in turn.returned)
        return "done" if turn.returned else {"fetch": {}}

    house, said = handed(worker, fetch)

    assert "done" in said
    assert f"Only the first 48,000 of {HUGE:,} characters are shown. All of it is recorded" in seen[0]
    assert len(seen[0]) < 50_000
    assert 1 == len(house.told("tool.completed"))


def test_a_result_that_is_no_text_is_shown_as_json_if_it_is_too_long() -> None:
    """A list is given as it is if it fits, and as the beginning of its text if not."""
    seen: list[str] = []

    def rows(count: int) -> list[int]:
        """Give rows."""
        return list(range(count))

    def worker(turn: Any) -> Any:  # noqa: ANN401 - a turn
        seen.extend(words for _, words in turn.returned[-1:])
        steps = [3, 50_000]
        return {"rows": {"count": steps[len(turn.returned)]}} if len(turn.returned) < len(steps) else "done"

    handed(worker, rows)

    assert ("[0,1,2]", True) == (seen[0], seen[1].startswith("[0,") and "characters are shown" in seen[1])
