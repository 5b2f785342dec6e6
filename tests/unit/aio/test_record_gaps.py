"""Gaps in the record, in the asynchronous face: a run that is only watched goes on, and says so afterwards."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from batonpass.errors import StoreFullError
from batonpass.handoff.tools.call_context import current_call
from batonpass.model.base.kinds import Mode
from tests.unit.aio.faces import PATIENCE, a_relay, a_start, kinds, run_async
from tests.unit.handoff.outage import Outage


async def here(word: str) -> str:
    """Work in the event loop."""
    await asyncio.sleep(0)
    return word


def there(word: str) -> str:
    """Work in a thread."""
    return word


TOOLS = pytest.mark.parametrize("function", [here, there], ids=["a coroutine function", "a function"])


@TOOLS
def test_an_observed_call_is_made_although_it_cannot_be_recorded(function: Callable[[str], Any]) -> None:
    """The agent notices nothing; the next thing that is written comes after the receipt of the gap."""

    async def main() -> None:
        store = Outage()
        relay = a_relay(store)
        async with a_start(relay) as lead:
            store.full = True
            assert "a" == await lead.call(function, "a")
            store.full = False
            assert "b" == await lead.call(function, "b")
            assert ["run.started", "run.gap", "tool.requested", "tool.completed"] == kinds(relay, lead.id)
        await relay.verify()

    run_async(main)


@TOOLS
def test_an_enforced_call_is_stopped(function: Callable[[str], Any]) -> None:
    """Who is held to a grant does nothing that is not recorded."""

    async def main() -> None:
        store = Outage()
        async with a_relay(store).start("begin", by="user:ana", mode=Mode.ENFORCED) as lead:
            store.full = True
            with pytest.raises(StoreFullError):
                await lead.call(function, "a")
            store.full = False

    run_async(main)


def test_an_outcome_that_cannot_be_written_leaves_a_doubt() -> None:
    """The agent gets what the tool returned, or what it raised; whoever goes on finds both calls in doubt."""

    async def main() -> None:
        store = Outage()
        relay = a_relay(store)
        lead = await a_start(relay)

        async def act() -> str:
            store.full = True
            return "done"

        def broken() -> None:
            store.full = True
            raise ValueError("it broke")

        assert "done" == await lead.call(act)
        store.full = False
        with pytest.raises(ValueError, match="it broke"):
            await lead.call(broken)
        store.full = False
        async with relay.resume(lead.id) as again:
            assert ["act", "broken"] == [call.tool for call in again.earlier.in_doubt]

    run_async(main)


def test_an_unrecorded_call_obeys_a_cancellation() -> None:
    """What runs in a thread is waited for, and then the cancellation goes on, as with any other call."""
    begun, free = threading.Event(), threading.Event()

    def send() -> str:
        begun.set()
        free.wait(PATIENCE)
        assert current_call() is not None
        return "sent"

    async def main() -> None:
        store = Outage()
        async with a_start(a_relay(store)) as lead:
            store.full = True
            task = asyncio.create_task(lead.call(send))
            await asyncio.to_thread(begun.wait, PATIENCE)
            task.cancel()
            await asyncio.sleep(0)
            free.set()
            await asyncio.wait({task})
            store.full = False
            assert task.cancelled()

    run_async(main)
