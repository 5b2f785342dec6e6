"""What a call returned: something that runs later is no outcome, neither here nor in a loop."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from batonpass.aio import AsyncRelay
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, bodies, kinds, receipts, words


class World:
    """What tools did, in the order in which they did it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def generate(self, last: str = "b") -> Iterator[str]:
        """Do one thing for each item that somebody asks for."""
        for name in ("a", last):
            call = current_call()
            assert call is not None
            call.effect("custom", name)
            self.done.append(name)
            if name == "bad":
                raise ValueError("no good")
            yield name

    async def stream(self, last: str = "b") -> AsyncIterator[str]:
        """Do the same in a loop."""
        for name in self.generate(last):
            await asyncio.sleep(0)
            yield name

    async def later(self) -> str:
        """Do something when it is awaited."""
        self.done.append("later")
        return "done"

    def promise(self) -> Awaitable[str]:
        """Return something to be awaited, as a function that is not declared as one."""
        return self.later()

    async def twice(self) -> Awaitable[str]:
        """Return something to be awaited once it was awaited."""
        return self.later()


@pytest.fixture
def world() -> World:
    """Return a world in which nothing has happened."""
    return World()


class TestHere:
    """A synchronous run."""

    def test_a_generator_is_run_before_its_outcome_is_recorded(self, relay: Relay, lead: LiveRun, world: World) -> None:
        """It comes back as a list, with what it said while it ran; nothing is done after the call."""
        result: Any = lead.call(world.generate)
        (ended,) = bodies(relay, Kind.TOOL_COMPLETED)

        assert (["a", "b"], ["a", "b"], 2) == (result, world.done, len(ended.effects))
        assert '["a", "b"]' == words(relay, receipts(relay, Kind.TOOL_COMPLETED)[0], "result")

    @pytest.mark.parametrize(
        "make",
        [
            lambda world: map(world.done.append, "ab"),
            lambda world: filter(world.done.append, "ab"),
            lambda world: enumerate(map(world.done.append, "ab")),
            lambda world: itertools.chain(map(world.done.append, "ab")),
        ],
        ids=["map", "filter", "enumerate", "chain"],
    )
    def test_what_else_is_lazy_is_run_too(self, lead: LiveRun, world: World, make: Callable[[World], Any]) -> None:
        """Built-in iterators work as late as generators do."""
        result = lead.call(lambda: make(world))

        assert (list, ["a", "b"]) == (type(result), world.done)

    def test_a_generator_that_fails_is_a_call_that_failed(self, relay: Relay, lead: LiveRun, world: World) -> None:
        """With what it did until then."""
        with pytest.raises(ValueError, match="no good"):
            lead.call(world.generate, "bad")
        (ended,) = bodies(relay, Kind.TOOL_FAILED)

        assert ([], 2) == (bodies(relay, Kind.TOOL_COMPLETED), len(ended.effects))

    def test_a_generator_without_an_end_is_ended(
        self, relay: Relay, lead: LiveRun, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody waits for it forever."""
        monkeypatch.setattr("batonpass.handoff.tools.returned_value.MOST_ITEMS", 1000)
        with pytest.raises(InvalidValueError, match="more than 1,000 items; return them in parts"):
            lead.call(tool("count")(lambda: itertools.count(1)))

        assert ["value.invalid"] == [body.error for body in bodies(relay, Kind.TOOL_FAILED)]

    def test_the_next_attempt_gets_the_same_list(self, lead: LiveRun, world: World) -> None:
        """A generator has no form that could be kept, a list has."""
        handoff = lead.hand_off("editor", "Edit")
        first = handoff.accept()
        first.call(world.generate)
        first.fail(ConnectionError("the model is gone"))
        handoff.retry(by=ANA)

        again: Any = handoff.accept().call(world.generate)

        assert (["a", "b"], ["a", "b"]) == (again, world.done)

    @pytest.mark.parametrize("name", ["promise", "stream"])
    def test_what_only_a_loop_can_run_has_not_happened(
        self, relay: Relay, lead: LiveRun, world: World, name: str
    ) -> None:
        """It is recorded as failed, and whoever called is told where to call it."""
        with pytest.raises(InvalidValueError, match="which has not run; call it on an AsyncRun"):
            lead.call(getattr(world, name))

        assert ["run.started", "tool.requested", "tool.failed"] == kinds(relay)
        assert [] == world.done

    def test_what_is_no_work_is_left_alone(self, lead: LiveRun) -> None:
        """A list iterator or an iterator of somebody's own is a value like any other."""
        values = iter([1, 2])

        assert values is lead.call(lambda: values)
        assert [1, 2] == list(values)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("generate", ["a", "b"]),
        ("stream", ["a", "b"]),
        ("promise", "done"),
        ("twice", "done"),
    ],
)
def test_in_a_loop_all_of_it_is_part_of_the_call(world: World, name: str, expected: object) -> None:
    """Generators of both kinds are run to their end, and what is to be awaited is awaited."""

    async def work() -> tuple[Any, list[str], list[str]]:
        async with AsyncRelay.open("memory:") as relay:
            lead = await relay.start("Fix it", by=ANA)
            result: Any = await lead.call(getattr(world, name))
            done = [*world.done]
            return result, done, kinds(relay.sync)

    result, done, recorded = asyncio.run(work())

    assert (expected, ["run.started", "tool.requested", "tool.completed"]) == (result, recorded)
    assert (["a", "b"] if expected == ["a", "b"] else ["later"]) == done


def test_a_stream_that_fails_in_a_loop_is_a_call_that_failed(world: World) -> None:
    """Its outcome says what it did until then."""

    async def work() -> list[Any]:
        async with AsyncRelay.open("memory:") as relay:
            lead = await relay.start("Fix it", by=ANA)
            with pytest.raises(ValueError, match="no good"):
                await lead.call(world.stream, "bad")
            return bodies(relay.sync, Kind.TOOL_FAILED)

    (failed,) = asyncio.run(work())

    assert (["a", "bad"], 2) == (world.done, len(failed.effects))


def test_a_stream_without_an_end_is_ended_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is closed there: what it has to clean up, it cleans up before its outcome."""
    monkeypatch.setattr("batonpass.handoff.tools.returned_value.MOST_ITEMS", 10)
    cleaned: list[bool] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            cleaned.append(True)

    async def work() -> None:
        async with AsyncRelay.open("memory:") as relay:
            lead = await relay.start("Fix it", by=ANA)
            with pytest.raises(InvalidValueError, match="more than 10 items"):
                await lead.call(endless)

    asyncio.run(work())

    assert [True] == cleaned
