"""A cancellation leaves nothing half done, nothing in doubt that is not, and no run that nobody holds."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from batonpass.aio import AsyncHandoff, AsyncRun
from batonpass.errors import CallInDoubtError, StreamClosedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Kind
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.run import RunState
from batonpass.store.memory import MemoryStore
from tests.unit.aio.faces import PATIENCE, a_relay, a_start, failures, kinds, run_async


class Gate(MemoryStore):
    """A store that stops a writer before it writes a kind of receipt, until it is let through."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: str | None = None
        self.reached = threading.Event()
        self.opened = threading.Event()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write, once the gate is open."""
        if any(entry.signed.receipt.kind == self.stops for entry in entries):
            self.reached.set()
            self.opened.wait(PATIENCE)
        super().append(entries)


async def cancelled_at_the_gate(gate: Gate, kind: Kind, act: Callable[[], Awaitable[object]]) -> bool:
    """Cancel an act while its receipt is being written, let it through, and return whether it was cancelled."""
    gate.stops = kind

    async def acting() -> None:
        await act()

    task = asyncio.create_task(acting())
    await asyncio.to_thread(gate.reached.wait, PATIENCE)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    gate.opened.set()
    await asyncio.wait({task})
    gate.stops = None
    return task.cancelled()


@pytest.mark.parametrize("idempotent", [False, True], ids=["once", "idempotent"])
def test_a_call_that_is_cancelled_is_in_doubt(*, idempotent: bool) -> None:
    """Nobody knows how far a coroutine came: it has no outcome, is listed, and is repeated only if that is safe."""
    begun = asyncio.Event()
    made: list[int] = []

    @tool("send", idempotent=idempotent)
    async def send() -> str:
        made.append(1)
        if len(made) == 1:
            begun.set()
            await asyncio.Event().wait()
        return "sent"

    async def main() -> None:
        relay = a_relay()
        lead = await a_start(relay)
        task = asyncio.create_task(lead.call(send))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert ["run.started", "tool.requested"] == kinds(relay, lead.id)
        async with relay.resume(lead.id) as again:
            assert ["send"] == [call.tool for call in again.earlier.in_doubt]
            if idempotent:
                assert "sent" == await again.call(send)
            else:
                with pytest.raises(CallInDoubtError):
                    await again.call(send)
        assert (1 + idempotent, []) == (len(made), failures(relay))

    run_async(main)


def test_a_function_that_cannot_be_interrupted_is_waited_for() -> None:
    """What runs in a thread happens anyway: its true outcome is recorded, and then the cancellation goes on."""
    begun, free = threading.Event(), threading.Event()

    def send() -> str:
        begun.set()
        free.wait(PATIENCE)
        return "sent"

    async def main() -> None:
        relay = a_relay()
        async with a_start(relay) as lead:
            task = asyncio.create_task(lead.call(send))
            await asyncio.to_thread(begun.wait, PATIENCE)
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
            free.set()
            await asyncio.wait({task})
            assert task.cancelled()
            assert ["run.started", "tool.requested", "tool.completed"] == kinds(relay, lead.id)

    run_async(main)


def test_a_call_that_was_cancelled_before_it_was_made_is_not_in_doubt() -> None:
    """Its request is durable and it was never made: that is recorded, so the next attempt may make it."""
    made: list[int] = []

    async def main() -> None:
        gate = Gate()
        relay = a_relay(gate)
        lead = await a_start(relay)
        assert await cancelled_at_the_gate(gate, Kind.TOOL_REQUESTED, lambda: lead.call(made.append, 1))
        assert (["cancelled"], []) == (failures(relay), made)
        async with relay.resume(lead.id) as again:
            await again.call(made.append, 1)
            assert ((), [1]) == (again.earlier.in_doubt, made)

    run_async(main)


def test_an_offer_that_was_cancelled_is_found_again() -> None:
    """A handoff that became durable while its caller was cancelled is there under its key, once."""

    async def main() -> None:
        gate = Gate()
        relay = a_relay(gate)
        async with a_start(relay) as lead:

            async def offer() -> AsyncHandoff:
                handoff: AsyncHandoff = await lead.hand_off("editor", "Do your part")
                return handoff

            assert await cancelled_at_the_gate(gate, Kind.HANDOFF_INITIATED, offer)
            async with lead.hand_off("editor", "Do your part") as editor:
                editor.report("done")
            with gate.view() as view:
                assert ([State.COMPLETED], 1) == ([known.state for known in view.find_handoffs()], editor.attempt)

    run_async(main)


def test_an_acceptance_that_was_cancelled_ends_its_attempt() -> None:
    """Nobody holds the run that was accepted, so it fails, and the same handoff can be tried again."""

    async def main() -> None:
        gate = Gate()
        relay = a_relay(gate)
        async with a_start(relay) as lead:

            async def enter() -> None:
                async with lead.hand_off("editor", "Do your part"):
                    raise AssertionError("it was cancelled before")

            assert await cancelled_at_the_gate(gate, Kind.HANDOFF_ACCEPTED, enter)
            async with lead.hand_off("editor", "Do your part") as editor:
                assert 2 == editor.attempt
        await relay.verify()

    run_async(main)


def test_a_start_that_was_cancelled_leaves_no_open_run() -> None:
    """The run became durable and nobody has it: it is closed as failed."""

    async def main() -> None:
        gate = Gate()
        relay = a_relay(gate)
        async with a_start(relay):
            pass

        async def begin() -> object:
            return await a_start(relay)

        assert await cancelled_at_the_gate(gate, Kind.RUN_STARTED, begin)
        with gate.view() as view:
            assert {RunState.COMPLETED, RunState.FAILED} == {run.state for run in view.find_runs()}

    run_async(main)


def test_an_attempt_that_is_cancelled_has_failed() -> None:
    """Cancelling whoever works on a handoff is recorded, and the cancellation goes on."""

    async def main() -> None:
        relay = a_relay()
        begun = asyncio.Event()

        async def editor(_: AsyncRun) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with a_start(relay) as lead:
            handoff = await lead.hand_off("editor", "Do your part", run=editor)
            task = asyncio.create_task(handoff.wait())
            await begun.wait()
            task.cancel()
            await asyncio.wait({task})
            assert (True, State.FAILED) == (task.cancelled(), await handoff.state())

    run_async(main)


def test_a_call_in_a_run_that_is_over_does_not_swallow_the_cancellation() -> None:
    """Whoever cancels a call of a run that somebody else ended is still obeyed."""

    async def main() -> None:
        relay = a_relay()
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        async def broken() -> None:
            await handoff.cancel(by="user:ana", reason="enough")
            raise ValueError("too late")

        async with a_start(relay) as lead:
            handoff = await lead.hand_off("editor", "Do your part")
            editor = await handoff.accept()
            task = asyncio.create_task(editor.call(forever))
            await begun.wait()
            await handoff.cancel(by="user:ana", reason="enough")
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            handoff = await lead.hand_off("reviewer", "Do your part")
            with pytest.raises(StreamClosedError):
                await (await handoff.accept()).call(broken)

    run_async(main)
