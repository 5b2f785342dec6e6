"""Decorators for agents and tools that are functions."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Grant, Relay, current_run, tool
from batonpass.adapters.own_loop import recorded_agent, recorded_tool
from batonpass.aio import AsyncRun
from batonpass.errors import GrantError, InvalidValueError
from batonpass.handoff.calls import begin
from batonpass.model.base.content_names import CONFIG
from batonpass.model.base.ids import RunId
from batonpass.model.base.lifecycle import State
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import ReceiptQuery


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """Return a relay in a directory of its own."""
    with Relay.open(tmp_path / ".batonpass" / "ledger.db") as opened:
        yield opened


@recorded_tool
@tool(target="to", action="greet", reads=True)
def greet(to: str) -> str:
    return f"hello {to}"


@recorded_tool
async def greet_later(to: str) -> str:
    await asyncio.sleep(0)
    return f"hello {to} for {current_run().agent}"


@recorded_agent("greeter", may=["greet:**"])
def greeter(task: str) -> str:
    return greet(task)


def test_an_agent_is_handed_its_task(relay: Relay) -> None:
    """Within a run, calling the function is a handoff, and its calls are calls of that agent."""
    with relay.start("Greet everybody", by="user:ana") as lead:
        assert "hello ana" == greeter("ana")
        with relay.store.view() as view:
            (handoff,) = view.find_handoffs(parent=lead.id)

    assert ("greeter", State.COMPLETED) == (handoff.to, handoff.state)
    assert "hello ana" == relay.handoff(handoff.id).result().report.result  # type: ignore[union-attr]


def test_the_same_task_twice_is_done_twice(relay: Relay) -> None:
    """A loop that asks for the same is no replay."""
    made = []

    @recorded_agent("worker")
    def work(task: str) -> int:
        made.append(task)
        return len(made)

    with relay.start("Count", by="user:ana") as lead:
        assert [1, 2] == [work("go on"), work("go on")]
        with relay.store.view() as view:
            assert 2 == len(list(view.find_handoffs(parent=lead.id)))


def test_a_grant_holds_the_agent(relay: Relay) -> None:
    """A call that it does not cover is not made."""

    @recorded_agent("mute", may=["greet:nobody"])
    def mute(task: str) -> str:
        return greet(task)

    with relay.start("Greet", by="user:ana"), pytest.raises(GrantError):
        mute("ana")


def test_coroutine_functions_stay_some(relay: Relay) -> None:
    """Agents and tools that are awaited are recorded in the same way, side by side too."""

    @recorded_agent("one")
    async def one(task: str) -> str:
        return await greet_later(task)

    @recorded_agent("two")
    async def two(task: str) -> str:
        return await greet_later(task)

    async def main() -> list[str]:
        return list(await asyncio.gather(one("ana"), two("bob")))

    with relay.start("Greet", by="user:ana") as lead:
        assert ["hello ana for one", "hello bob for two"] == asyncio.run(main())
        with relay.store.view() as view:
            assert {"one", "two"} == {handoff.to for handoff in view.find_handoffs(parent=lead.id)}


def test_without_a_run_a_tool_is_called_as_it_is() -> None:
    """Code that is used outside of agents works there as well."""
    assert "hello ana" == greet("ana")


def test_an_agent_without_a_principal_says_so() -> None:
    """Nobody works for nobody."""
    with pytest.raises(InvalidValueError, match="principal of greeter is unknown"):
        greeter("ana")


def test_a_failure_is_the_agents(relay: Relay) -> None:
    """The error passes through, and the handoff has failed."""

    @recorded_agent("broken")
    def broken(task: str) -> str:
        raise LookupError(task)

    with relay.start("Break", by="user:ana") as lead:
        with pytest.raises(LookupError):
            broken("it")
        with relay.store.view() as view:
            assert [State.FAILED] == [handoff.state for handoff in view.find_handoffs(parent=lead.id)]


def test_an_agent_within_an_agent_is_held_as_well(relay: Relay) -> None:
    """It gets at most what the one above it may delegate."""

    @recorded_agent("inner", may=["greet:bob"])
    def inner(task: str) -> str:
        return greet(task)

    @recorded_agent("outer", grant=Grant(may=["greet:**"], may_delegate=["greet:bob"]))
    def outer(task: str) -> object:
        return inner(task)

    with relay.start("Greet", by="user:ana"):
        assert "hello bob" == outer("bob")
        with pytest.raises(GrantError):
            outer("mallory")


def test_a_guard_that_crashes_stops_the_call(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """An enforced call is not made if nobody could judge it."""
    made: list[str] = []

    @recorded_tool
    def write(path: str) -> None:
        made.append(path)

    @recorded_agent("editor", may=["call:**"])
    def edit(task: str) -> None:
        write(task)

    def fail(_: object) -> None:
        raise ZeroDivisionError

    with relay.start("Write", by="user:ana"):
        monkeypatch.setattr(begin, "authorise", fail)
        with pytest.raises(ZeroDivisionError):
            edit("a.py")

    assert [] == made


def test_a_retry_runs_the_agent_only(relay: Relay) -> None:
    """The program runs the agent's function in the next attempt: what it had finished is not done again."""
    made: list[str] = []

    @recorded_tool
    def write(path: str) -> str:
        made.append(path)
        return "written"

    def work(task: str, *, dies: bool) -> str:
        write(task)
        if dies:
            raise LookupError(task)
        return "done"

    with relay.start("Write", by="user:ana") as lead:
        with pytest.raises(LookupError):
            recorded_agent("editor")(work)("a.py", dies=True)
        (found,) = list_handoffs(relay, lead.id)
        handoff = lead.handoff(found)
        handoff.retry(reason="again")
        with handoff.accept() as run:
            run.report(work(run.task, dies=False))

    assert (["a.py"], State.COMPLETED) == (made, handoff.state())


def list_handoffs(relay: Relay, parent: str) -> list[str]:
    """Return the ids of a run's handoffs."""
    with relay.store.view() as view:
        return [str(one.id) for one in view.find_handoffs(parent=RunId(parent))]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_says_what_it_is_made_of(relay: Relay, *, is_async: bool) -> None:
    """Model, prompt as a digest, and tools are recorded with each handoff; without them nothing is."""

    @recorded_agent("writer", model="m-1", prompt="You write.", tools=[greet])
    def write(task: str) -> str:
        return task

    @recorded_agent("writer", model="m-1", prompt="You write.", tools=[greet])
    async def write_later(task: str) -> str:
        return task

    async def work() -> None:
        async with AsyncRun(relay.start("Write", by="user:ana")):
            await write_later("a letter")

    if is_async:
        asyncio.run(work())
    else:
        with relay.start("Write", by="user:ana"):
            write("a letter")
            greeter("ana")
    with relay.store.view() as view:
        receipts = [read_receipt(one) for one in view.find_receipts(ReceiptQuery(kind="handoff.accepted"))]
        found = [read_texts(view, one).get(CONFIG) for one in receipts]

    assert found[0] is not None
    assert found[0].words is not None
    assert ("m-1", ["greet"], False) == (
        json.loads(found[0].words)["model"],
        json.loads(found[0].words)["tools"],
        "You write" in found[0].words,
    )
    assert [None] * (not is_async) == found[1:]
