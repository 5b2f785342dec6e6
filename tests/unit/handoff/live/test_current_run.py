"""The current run: nobody passes runs through their code, and nobody records under somebody else's name."""

import asyncio
from contextlib import suppress

from batonpass import aio, current_run
from batonpass.dispatch.worker import Worker
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA


def seen() -> str:
    """Return which run is current, or what is said instead."""
    try:
        return current_run().id
    except InvalidValueError as error:
        return error.problem


def test_a_run_is_current_until_it_is_left(relay: Relay) -> None:
    """However deep it goes, and whether it ends well or not."""
    told = [seen()]
    with relay.start("begin", by=ANA) as lead:
        told.append(seen())
        with lead.hand_off("editor", "one") as child:
            told.append(seen())
            with suppress(KeyError), child.hand_off("tester", "two") as deeper:
                told.append(seen())
                raise KeyError
            told.append(seen())
        told.append(seen())
    told.append(seen())

    assert [lead.id, child.id, deeper.id, child.id, lead.id] == told[1:-1]
    assert all("there is none here" in nobody for nobody in (told[0], told[-1]))


def test_a_runner_works_for_its_run(relay: Relay) -> None:
    """Here, and in a worker."""
    found: list[tuple[str, str]] = []

    def work(run: LiveRun) -> None:
        found.append((run.id, seen()))

    relay.register("editor", work)
    with relay.start("begin", by=ANA) as lead:
        lead.hand_off("editor", "here").wait()
        lead.hand_off("editor", "there", carrier="worker")
        Worker(relay).work_one()

    assert 2 == len(found)
    assert all(run == current for run, current in found)


def test_holding_a_run_is_enough_to_make_it_current(relay: Relay) -> None:
    """Twice inside of each other is as good as once, and nothing is closed by it."""
    lead = relay.start("begin", by=ANA)
    with lead.as_current():
        with lead.as_current():
            pass
        told = seen()
    lead.close()

    assert lead.id == told
    assert "there is none here" in seen()


def test_tasks_inherit_it(relay: Relay) -> None:
    """Each task works for the run of whoever started it, though all of them share a thread."""

    async def task() -> tuple[str, str]:
        await asyncio.sleep(0)
        return aio.current_run().id, await asyncio.to_thread(seen)

    async def child(lead: aio.AsyncRun, name: str) -> bool:
        async with lead.hand_off("editor", name) as run:
            return {(run.id, run.id)} == set(await asyncio.gather(task(), task()))

    async def all_of_them() -> tuple[list[bool], tuple[str, str], str]:
        async with aio.AsyncRelay(relay).start("begin", by=ANA) as lead:
            children = await asyncio.gather(*(child(lead, f"part {number}") for number in range(5)))
            return children, await task(), lead.id

    children, after, lead = asyncio.run(all_of_them())

    assert ([True] * 5, (lead, lead)) == (children, after)
    assert "there is none here" in seen()
