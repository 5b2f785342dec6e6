"""The asynchronous face: the same acts, awaited."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from batonpass.aio import AsyncRelay, AsyncRun
from batonpass.dispatch.worker import Worker
from batonpass.errors import CallInDoubtError, HandoffHeldError, InvalidValueError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import CallContext, current_call
from batonpass.handoff.tools.declaration import declared_of
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Decision, Report
from batonpass.model.ledger.run import RunState
from tests.unit.aio.faces import PATIENCE, a_relay, a_start, failures, run_async


def test_a_tree_is_recorded_as_by_the_synchronous_face() -> None:
    """Start, record, attach, call, hand off, report, verify: all there, and the ledger verifies."""

    async def write_file(path: str) -> str:
        await asyncio.sleep(0)
        return path

    async def main() -> None:
        async with AsyncRelay.open("memory:") as relay:
            async with relay.start("Fix invoice rounding", by="user:ana") as lead:
                await lead.record(Decision("round half-even", why="tax office"))
                await lead.attach("notes.txt", "some notes")
                async with lead.hand_off("editor", "Make total() round half-even") as editor:
                    assert editor.baton is not None
                    assert ("round half-even", b"some notes") == (
                        editor.baton.decisions[0].what,
                        await editor.read("notes.txt"),
                    )
                    assert "src/invoice.py" == await editor.call(write_file, "src/invoice.py")
                    editor.report("done", open_questions=["negative totals untested"])
                handoff = await lead.hand_off("editor", "Make total() round half-even")
                assert await handoff.verify(verdict="I looked at it")
                assert State.VERIFIED == await handoff.state()
                assert (lead.id, "lead", "user:ana", 1, "") == (
                    lead.root,
                    lead.agent,
                    lead.principal,
                    lead.attempt,
                    lead.task,
                )
            evidence = await relay.verify()
            assert (2, 1) == (evidence.runs, evidence.handoffs)
            assert 0 < len(list(await relay.admin.export(lead.id)))

    run_async(main)


def test_a_start_can_be_awaited_or_entered() -> None:
    """Both `async with relay.start(...)` and `async with await relay.start(...)` close the run at the end."""

    async def main() -> None:
        relay = a_relay()
        async with await a_start(relay) as first:
            pass
        async with a_start(relay) as second:
            pass
        with pytest.raises(ValueError, match="lost"):
            async with a_start(relay) as third:
                raise ValueError("lost")
        with relay.store.view() as view:
            states = [view.get_run(run.id).state for run in (first, second, third)]
        assert [RunState.COMPLETED, RunState.COMPLETED, RunState.FAILED] == states

    run_async(main)


def test_a_runner_gets_the_face_that_it_can_use() -> None:
    """A coroutine function gets an `AsyncRun`, a function a `LiveRun` in a thread of its own; both report."""
    got: list[type] = []

    async def editor(run: AsyncRun) -> str:
        got.append(type(run))
        await run.record(Decision("so"))
        return run.task

    def reviewer(run: LiveRun) -> Report:
        got.append(type(run))
        assert threading.current_thread() is not threading.main_thread()
        return Report(result=run.task)

    async def failing(_: AsyncRun) -> None:
        raise KeyError("nothing")

    async def main() -> None:
        relay = a_relay()
        assert [editor, reviewer] == [relay.agent("editor")(editor), relay.register("reviewer", reviewer)]
        async with a_start(relay) as lead:
            results = [await (await lead.hand_off(agent, "Do your part")).wait() for agent in ("editor", "reviewer")]
            failed = await (await lead.hand_off("other", "Do it too", run=failing)).wait()
        assert ["Do your part"] * 2 == [result.value for result in results]
        assert (State.FAILED, "KeyError: 'nothing'") == (failed.state, failed.reason)
        assert [AsyncRun, LiveRun] == got
        assert {"editor", "reviewer"} == set(relay.runners)

    run_async(main)


def test_a_synchronous_worker_runs_what_was_registered_asynchronously() -> None:
    """A coroutine function that was registered with an `AsyncRelay` gets its `AsyncRun` from any worker."""

    async def editor(run: AsyncRun) -> str:
        await run.record(Decision("so"))
        return "done"

    relay = a_relay()
    relay.register("editor", editor)
    with relay.sync.start("Fix it", by="user:ana") as lead:
        handoff = lead.hand_off("editor", "Do your part", carrier=Carrier.WORKER)
        worked = Worker(relay.sync).work_one()

        assert (True, "done") == (worked, handoff.result().value)


def test_a_time_that_is_none_is_refused_before_anybody_works() -> None:
    """As by the synchronous face."""
    worked = []

    async def editor(run: AsyncRun) -> None:
        worked.append(run.id)

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            handoff = await lead.hand_off("editor", "Do your part", run=editor)
            with pytest.raises(InvalidValueError, match="timeout"):
                await handoff.wait("10x")
            assert ([], State.OFFERED) == (worked, await handoff.state())

    run_async(main)


def test_a_tool_knows_its_call_and_runs_where_it_can() -> None:
    """A coroutine function is awaited here, a function has a thread of its own, and both know which call they are."""
    seen: list[tuple[CallContext | None, bool]] = []

    async def here() -> int:
        seen.append((current_call(), threading.current_thread() is threading.main_thread()))
        return 1

    def there() -> int:
        seen.append((current_call(), threading.current_thread() is threading.main_thread()))
        return 2

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            disguised = lambda: here()  # noqa: E731, PLW0108 - it is no coroutine function, and returns a coroutine
            assert [1, 2, 1] == [await lead.call(here), await lead.call(there), await lead.call(disguised)]
            assert [lead.id] * 3 == [context.run for context, _ in seen if context is not None]
            assert current_call() is None
        assert [True, False, True] == [main for _, main in seen]

    run_async(main)


def test_a_call_that_fails_is_recorded_and_raises() -> None:
    """The error is the tool's own, with the code of its type; even one that no future can hold."""

    async def broken() -> None:
        raise ConnectionError("gone")

    def wrong() -> None:
        raise ValueError("no such thing")

    def exhausted() -> None:
        next(iter(()))

    async def main() -> None:
        relay = a_relay()
        async with a_start(relay) as lead:
            with pytest.raises(ConnectionError):
                await lead.call(broken)
            with pytest.raises(ValueError, match="no such thing"):
                await lead.call(wrong)
            with pytest.raises(RuntimeError):
                await lead.call(exhausted)
        assert ["connection", "value", "runtime"] == failures(relay)

    run_async(main)


def test_fifty_waits_do_not_fill_the_executor() -> None:
    """Fifty tasks wait for fifty handoffs, more than the executor has threads, and workers still get through."""

    async def main() -> None:
        relay = a_relay()
        relay.register("editor", lambda run: run.task)
        async with a_start(relay) as lead:
            tasks = [f"part {number} of fifty" for number in range(50)]
            handoffs = [await lead.hand_off("editor", task, carrier=Carrier.WORKER) for task in tasks]
            waits = [asyncio.create_task(handoff.wait()) for handoff in handoffs]
            await asyncio.sleep(0)
            worker = Worker(relay.sync)
            while await asyncio.to_thread(worker.work_one):
                pass
            assert tasks == [result.value for result in await asyncio.gather(*waits)]

    run_async(main)


def test_fifty_runners_in_threads_do_not_fill_the_executor() -> None:
    """Functions that run long, and meet each other, have threads of their own; the ledger's acts still get theirs."""
    together = threading.Barrier(50)

    def editor(run: LiveRun) -> str:
        together.wait(PATIENCE)
        return run.call(str.upper, run.task)

    async def main() -> None:
        relay = a_relay()
        relay.register("editor", editor)
        async with a_start(relay) as lead:
            handoffs = [await lead.hand_off("editor", f"part {number}") for number in range(50)]
            results = await asyncio.gather(*(handoff.wait() for handoff in handoffs))
            assert {f"PART {number}" for number in range(50)} == {result.value for result in results}

    run_async(main)


def test_waiting_ends_when_the_time_is_up() -> None:
    """Nobody takes it: waiting ends with `TimeoutError`, and the handoff is still there."""

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            handoff = await lead.hand_off("nobody", "Do it", carrier=Carrier.WORKER)
            with pytest.raises(TimeoutError, match="is ready after"):
                await handoff.wait(timedelta(milliseconds=5))
            assert State.READY == await handoff.state()

    run_async(main)


def test_several_may_wait_for_what_one_of_them_runs() -> None:
    """The first who waits runs it; the others wait until it is done, and all get the same."""
    ran: list[int] = []

    async def editor(run: AsyncRun) -> str:
        ran.append(run.attempt)
        await asyncio.sleep(0.02)
        return "done"

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            handoff = await lead.hand_off("editor", "Do your part", run=editor)
            results = await asyncio.gather(*(handoff.wait() for _ in range(5)))
            assert (["done"] * 5, [1]) == ([result.value for result in results], ran)

    run_async(main)


@pytest.mark.parametrize("ending", ["completed", "verified"])
def test_what_is_finished_is_not_run_again(ending: str) -> None:
    """Running a finished handoff gives back its result; no agent works for it a second time, in either face."""
    ran: list[str] = []

    async def editor(_: AsyncRun) -> str:
        ran.append("async")
        return "done"

    def another(_: LiveRun) -> str:
        ran.append("sync")
        return "done again"

    async def main() -> None:
        relay = a_relay()
        async with a_start(relay) as lead:
            handoff = await lead.hand_off("editor", "Do your part", run=editor)
            first = await handoff.run()
            if ending == "verified":
                await handoff.verify(verdict="I looked at it")
            elsewhere = await relay.handoff(handoff.id)
            again = [await handoff.run(), await handoff.run(another), await elsewhere.run(editor)]
            assert (["async"], ["done"] * 4) == (ran, [result.value for result in (first, *again)])
            assert (ending, 1) == (await handoff.state(), (await handoff.info()).attempt)

    run_async(main)


@pytest.mark.parametrize("holds", [True, False], ids=["it holds", "it does not"])
def test_a_check_may_be_a_coroutine_function(*, holds: bool) -> None:
    """It is awaited where the program's own things are: an unawaited one would always seem to hold."""

    async def check() -> bool:
        await asyncio.sleep(0)
        return holds and threading.current_thread() is threading.main_thread()

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            handoff = await lead.hand_off("editor", "Do your part", run=lambda _: "done")
            await handoff.wait()
            assert holds == await handoff.verify(check=check)

    run_async(main)


def test_what_cannot_be_taken_raises_the_same() -> None:
    """Errors are those of the synchronous face; running it instead gives an answer."""

    async def main() -> None:
        async with a_start(a_relay()) as lead:
            held = await lead.hand_off("editor", "Do it", hold=True, run=lambda _: "done")
            with pytest.raises(HandoffHeldError):
                await held.accept()
            assert State.HELD == (await held.run()).state
            await held.approve(by="user:ana")
            assert State.COMPLETED == (await held.wait()).state

    run_async(main)


def test_a_resumed_run_goes_on_where_it_was() -> None:
    """Finished calls come from the record, and one that nobody knows the outcome of is refused."""
    made: list[str] = []

    async def send(to: str) -> str:
        made.append(to)
        return to

    async def main() -> None:
        relay = a_relay()
        lead = await a_start(relay)
        await lead.call(send, "ana")
        await lead.checkpoint(["so far"])
        planned: ToolCall[Any] = ToolCall(declared_of(send), send, ("bob",))
        begin_call(lead.sync._desk, lead.sync._holding, planned)
        async with relay.resume(lead.id) as again:
            assert ("ana", ["so far"]) == (await again.call(send, "ana"), await again.messages())
            with pytest.raises(CallInDoubtError):
                await again.call(send, "bob")
        assert ["ana"] == made

    run_async(main)
