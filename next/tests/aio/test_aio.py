"""The awaited face: the same names as the one that blocks, and what cancellation leaves behind."""

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import batonpass
from batonpass import AsyncHandoff, AsyncRelay, AsyncRun, Handoff, Relay, Run, aio
from batonpass.errors import CallDeniedError, CallInDoubtError, FencedError, InvalidValueError, StoreError
from batonpass.testing import Faults, Observed, a_relay, observe
from tools.generate_async import SOURCE, TARGET, generate

CALLED = ["tool.requested", "tool.completed"]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    with a_relay(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def awaited(relay: Relay) -> AsyncRelay:
    """Return the same relay, awaited."""
    return aio.of(relay)


def test_awaited_module_is_what_its_script_makes() -> None:
    """After a change of the handles: python tools/generate_async.py."""
    assert generate(SOURCE.read_text(encoding="utf-8")) == TARGET.read_text(encoding="utf-8")


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parity("async-has-the-same-names")
@pytest.mark.parametrize(("face", "other"), [(Relay, AsyncRelay), (Run, AsyncRun), (Handoff, AsyncHandoff)])
def test_awaited_classes_have_the_same_names_and_parameters(face: type, other: type) -> None:
    """Whoever knows one knows the other. What waits is a coroutine, or is iterated over with `async for`."""
    enters = {"__enter__": "__aenter__", "__exit__": "__aexit__"}
    names = {name for name in vars(face) if not name.startswith("_")} | enters.keys() & vars(face).keys()

    assert {enters.get(name, name) for name in names} == {
        name for name in vars(other) if not name.startswith("_") or name in enters.values()
    }
    for name in names:
        one, two = getattr(face, name), getattr(other, enters.get(name, name))
        if callable(one):
            assert parameters(one) == parameters(two), name
            waits = inspect.iscoroutinefunction(two) or inspect.isasyncgenfunction(two)
            assert waits is (name not in {"report", "as_current"}), name


def test_awaited_names_cost_nothing_until_they_are_used() -> None:
    """`import batonpass` does not import asyncio."""
    program = "import sys, batonpass; before = 'asyncio' in sys.modules; batonpass.AsyncRelay; print(before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "False\n" == done.stdout
    assert batonpass.AsyncRelay is aio.AsyncRelay


def test_handoff_is_the_same_awaited() -> None:
    """A run, a handoff with a coroutine and a function as tools, a report: the same receipts, and the same answers."""

    async def main() -> tuple[list[str], list[Any], Any]:
        async def fetch(page: int) -> str:
            await asyncio.sleep(0)
            return f"page {page}"

        def add(one: int, two: int) -> int:
            return one + two

        async with await AsyncRelay.open("memory:") as relay:
            async with await relay.start("Sum up", by="user:ana") as root:
                handoff = await root.hand_off("reader", "Read page 3")
                async with handoff as run:
                    said = [await run.call(fetch, 3), await run.call(add, 1, two=2)]
                    said.append(await run.call(lambda: fetch(4)))
                    run.report("read", value=said)
                result = await handoff.result()
                runs = [info.agent async for info in relay.runs()]
            return observe(relay).kinds(), [*said, *sorted(runs)], result

    kinds, said, result = asyncio.run(main())

    begun = ["run.started", "handoff.initiated", "handoff.accepted"]
    assert [*begun, *CALLED * 3, "handoff.completed", "run.closed"] == kinds
    assert ["page 3", 3, "page 4", "lead", "reader"] == said
    assert (["page 3", 3, "page 4"], "completed") == (result.report.value, result.state)


def test_default_relay_is_awaited_too() -> None:
    """`aio.start` records where `start` does: in the ledger of the folder."""

    async def main() -> str:
        async with await aio.start("Sum up", by="user:ana") as run:
            return run.id

    run = asyncio.run(main())
    with Relay.open() as relay:
        assert [run] == [info.id for info in relay.runs()]


def test_64_handoffs_at_once(awaited: AsyncRelay, relay: Relay) -> None:
    """They share commits and threads, and each has its own record."""

    async def hand_over(root: AsyncRun, number: int) -> int:
        async with await root.hand_off("worker", f"Square {number}") as run:
            return await run.call(lambda: number * number)

    async def main() -> list[int]:
        async with await awaited.start("Square them", by="user:ana") as root:
            return await asyncio.gather(*(hand_over(root, number) for number in range(64)))

    assert [number * number for number in range(64)] == asyncio.run(main())
    seen = observe(relay)
    assert {"completed"} == set(seen.handoffs.values())
    assert (64, 64, ()) == (len(seen.of("handoff.completed")), len(seen.of("tool.completed")), seen.in_doubt)


@pytest.mark.parity("tool-knows-its-call")
def test_tool_knows_its_run_and_its_call(awaited: AsyncRelay) -> None:
    """A coroutine finds the run to await, a function one that blocks, and both the key of their call."""

    async def coroutine() -> list[Any]:
        run, call = aio.current_run(), aio.current_call()
        assert run is not None
        assert call is not None
        await run.record(batonpass.Claim("awaited"))
        return [run.id, call.run, call.attempt, len(call.key)]

    def function() -> list[Any]:
        run, call = batonpass.current_run(), batonpass.current_call()
        assert run is not None
        assert call is not None
        run.record(batonpass.Claim("blocking"))
        run.report("said from inside")
        return [run.id, call.run, call.attempt, len(call.key)]

    async def main() -> tuple[str, list[Any], list[Any], Any]:
        async with await awaited.start("Sum up", by="user:ana") as root:
            handoff = await root.hand_off("worker", "Do it")
            async with handoff as run:  # inside of the root's `with`: the innermost counts
                return run.id, await run.call(coroutine), await run.call(function), handoff

    run, one, two, handoff = asyncio.run(main())

    assert [run, run, 1, 64] == one == two
    assert "said from inside" == asyncio.run(handoff.result()).report.result
    assert (batonpass.current_run(), batonpass.current_call()) == (None, None)


def test_run_of_a_call_is_current_without_a_with(relay: Relay) -> None:
    """Inside of another run's `with`, a tool finds the run that calls it."""
    with relay.start("Sum up", by="user:ana") as root:
        child = root.hand_off("worker", "Do it").accept()

        def whose() -> str:
            run = batonpass.current_run()
            return "" if run is None else run.agent

        assert ["worker", "lead"] == [child.call(whose), root.call(whose)]


def test_coroutine_is_refused_where_nobody_awaits_it(relay: Relay) -> None:
    """A run that blocks says which relay to take, and records that the call failed."""

    async def fetch() -> None: ...

    with relay.start("Sum up", by="user:ana") as run, pytest.raises(InvalidValueError, match="AsyncRelay"):
        run.call(fetch)  # type: ignore[unused-coroutine]
    assert ["tool.requested", "tool.failed"] == observe(relay).kinds()[1:3]


def test_errors_are_the_same_awaited(awaited: AsyncRelay, tmp_path: Path) -> None:
    """A denial, a tool's own error and a fenced run come out of an await as they come out of a call."""

    async def main() -> None:
        run = await awaited.start("Read", by="user:ana", may=["read:**"])
        with pytest.raises(CallDeniedError):
            await run.call(push)
        with pytest.raises(ValueError, match="no such page"):
            await run.call(find)
        before = await awaited.start("Read", by="user:ana")
        with Relay.open(tmp_path / "ledger.db") as other:
            other.resume(before.id)
        with pytest.raises(FencedError):
            await before.call(find)

    @batonpass.tool(action="run")
    def push() -> None:
        made.append("push")

    @batonpass.tool(reads=True)
    def find() -> None:
        made.append("find")
        raise ValueError("no such page")

    made: list[str] = []
    asyncio.run(main())
    assert ["find"] == made


class CancelAt:
    """Awaits something, and cancels its task at one of its awaits."""

    def __init__(self, work: Coroutine[Any, Any, Any], at: int) -> None:
        self.work = work
        self.at = at
        self.awaits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                future = self.work.send(None) if error is None else self.work.throw(error)
            except StopIteration as stop:
                return stop.value
            self.awaits += 1
            if self.awaits == self.at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            error = None
            try:
                yield future
            except BaseException as thrown:  # noqa: BLE001 - it is passed on to what is awaited
                error = thrown


async def a_day(relay: AsyncRelay, made: list[str]) -> None:
    """Do everything that an agent does."""

    async def fetch() -> str:
        made.append("fetch began")
        await asyncio.sleep(0)
        made.append("fetch ended")
        return "page"

    def add() -> int:
        made.append("add")
        return 3

    async with await relay.start("Sum up", by="user:ana") as root:
        await root.record(batonpass.Claim("it is Friday"))
        async with await root.hand_off("reader", "Read") as run:
            await run.call(fetch)
            await run.call(add)
            run.report("done")
    made.append("over")


def test_cancellation_at_any_await_leaves_no_lock_and_no_half_act() -> None:
    """Every run is closed, what was made has an outcome, and only a coroutine that was cut short is in doubt."""

    async def cancelled_at(relay: AsyncRelay, number: int, made: list[str]) -> bool:
        work = CancelAt(a_day(relay, made), number)
        try:
            await work
        except asyncio.CancelledError:
            return True
        return work.awaits >= number

    for number in range(1, 99):
        with a_relay() as opened:
            made: list[str] = []

            async def main(opened: Relay = opened, number: int = number, made: list[str] = made) -> bool:
                return await cancelled_at(aio.of(opened), number, made)

            was_cancelled = asyncio.run(main())
            seen = observe(opened)
            if not was_cancelled:
                assert "over" == made[-1]
                break
            assert {"open"}.isdisjoint(seen.runs.values()), (number, seen.runs)
            assert set(seen.handoffs.values()) <= {"completed", "failed", "cancelled"}, (number, seen.handoffs)
            cut_short = "fetch began" in made and "fetch ended" not in made
            assert (["fetch"] if cut_short else []) == [call.tool for call in seen.in_doubt], number
            outcomes = len(seen.of("tool.completed")) + len(seen.of("tool.failed")) + len(seen.in_doubt)
            assert len(seen.of("tool.requested")) == outcomes, number
            assert (made.count("add") == 1) is ("add" in outcomes_of(seen)), number
            with opened.start("No lock is held", by="user:ana"):
                pass
    else:
        pytest.fail("the work never ended by itself")
    assert number > 9


def outcomes_of(seen: Observed) -> set[str]:
    """Return the tools of all calls that completed."""
    tools = {receipt.body["call"]: receipt.body["tool"] for receipt in seen.of("tool.requested")}
    return {tools[receipt.body["call"]] for receipt in seen.of("tool.completed")}


def test_timeout_waits_for_a_function_and_records_what_it_did(awaited: AsyncRelay, relay: Relay) -> None:
    """No thread can be stopped: its outcome is known before the timeout is heard, so nobody is asked about it."""
    at_work, go_on = threading.Event(), threading.Event()

    def pay() -> str:
        at_work.set()
        assert go_on.wait(10)
        return "paid"

    async def pay_in_time(run: AsyncRun) -> None:
        async with asyncio.timeout(None) as timeout:
            loop = asyncio.get_running_loop()
            late = asyncio.ensure_future(asyncio.to_thread(at_work.wait, 10))
            late.add_done_callback(lambda _: timeout.reschedule(loop.time()))
            late.add_done_callback(lambda _: loop.call_later(0.05, go_on.set))
            await run.call(pay)

    async def main() -> None:
        async with await awaited.start("Pay", by="user:ana") as run:
            with pytest.raises(TimeoutError):
                await pay_in_time(run)
            assert await run.call(lambda: "alive") == "alive"

    asyncio.run(main())
    assert [*CALLED, *CALLED] == observe(relay).kinds()[-5:-1]
    assert () == observe(relay).in_doubt


def test_coroutine_that_is_cancelled_is_in_doubt(awaited: AsyncRelay) -> None:
    """Nobody knows what it had done: an equal call is refused until it is settled."""

    async def pay() -> None:
        at_work.set()
        await asyncio.sleep(60)

    at_work = asyncio.Event()

    async def main() -> None:
        run = await awaited.start("Pay", by="user:ana")
        task = asyncio.create_task(run.call(pay))
        await at_work.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(CallInDoubtError):
            await run.call(pay)

    asyncio.run(main())


def test_call_that_was_judged_for_a_cancelled_caller_is_not_made(awaited: AsyncRelay, relay: Relay) -> None:
    """Its request is durable, so the record says that it was not made, and the next one is its own."""
    made: list[str] = []

    def pay(what: str) -> None:
        made.append(what)

    async def first(run: AsyncRun) -> None:
        await CancelAt(run.call(pay, "paid"), 1)

    async def main() -> None:
        async with await awaited.start("Pay", by="user:ana") as run:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(first(run))
            await run.call(pay, "paid")

    asyncio.run(main())
    seen = observe(relay)
    assert (["paid"], ()) == (made, seen.in_doubt)
    assert "not made: its caller was cancelled before it began" == seen.last("tool.failed").text("error")
    one, two = seen.of("tool.requested")
    assert one.body["key"] == two.body["key"]


def test_request_with_a_key_is_not_taken_back(awaited: AsyncRelay) -> None:
    """Its caller was cancelled and will ask again: the same key finds the run that began meanwhile."""

    async def first() -> None:
        await CancelAt(awaited.start("Pay", by="user:ana", key="k1"), 1)

    async def main() -> int:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(first())
        async with await awaited.start("Pay", by="user:ana", key="k1") as run:
            return await run.call(lambda: 3)

    assert 3 == asyncio.run(main())


def test_cancellation_is_heard_though_the_act_was_refused(awaited: AsyncRelay, relay: Relay) -> None:
    """A task that is told to stop stops, whatever became of its last act."""

    @batonpass.tool(action="run")
    def push() -> None: ...

    async def denied(run: AsyncRun) -> None:
        await CancelAt(run.call(push), 1)

    async def main() -> None:
        run = await awaited.start("Read", by="user:ana", may=["read:**"])
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(denied(run))

    asyncio.run(main())
    assert ["run.started", "tool.denied"] == observe(relay).kinds()


def test_both_faces_of_a_run_count_its_calls_together(relay: Relay) -> None:
    """An equal call of the other face is another call, and is not answered from the first."""
    made: list[int] = []

    def add(one: int) -> None:
        made.append(one)

    with relay.start("Sum up", by="user:ana") as run:
        awaited = aio.current_run()
        assert awaited is not None
        run.call(add, 1)
        asyncio.run(awaited.call(add, 1))

    assert [1, 1] == made
    assert 2 == len({receipt.body["key"] for receipt in observe(relay).of("tool.requested")})


def test_cancellation_is_heard_though_nothing_could_be_taken_back(tmp_path: Path) -> None:
    """The disk is full: the call stays in doubt in the record, and the task stops."""
    faults = Faults()

    async def pay(run: AsyncRun) -> None:
        await CancelAt(run.call(batonpass.tool(action="pay")(lambda: None)), 1)

    async def main(relay: Relay) -> None:
        run = await aio.of(relay).start("Pay", by="user:ana", may=["pay:**"])
        faults.at(3, "before", no_room)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(pay(run))

    with a_relay(tmp_path / "ledger.db", faults=faults) as opened:
        asyncio.run(main(opened))
        assert 1 == len(observe(opened).in_doubt)


def no_room() -> None:
    raise StoreError("the disk is full")
