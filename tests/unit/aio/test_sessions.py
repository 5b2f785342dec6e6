"""Sessions in the asynchronous face: the same names, awaited."""

import asyncio
from datetime import timedelta

from batonpass.handoff.tools.declaration import tool
from batonpass.model.baton.items import Decision, OpenQuestion
from tests.unit.aio.faces import a_relay, a_start, run_async


def test_a_session_is_saved_and_resumed() -> None:
    """What comes along, what is open again and why are there as in the other face; an async check is awaited."""

    async def rates() -> str:
        await asyncio.sleep(0)
        return "they rose"

    async def main() -> None:
        relay = a_relay()
        assert rates is relay.check("rates", rates)
        async with a_start(relay) as lead:
            await lead.record(Decision("d", why="w", conditions=("check:rates",)), OpenQuestion("q"))
            session = await lead.save_session()
        async with relay.resume_session(session, by="user:ana") as run:
            state = run.session

        assert [("check 'rates' says no: they rose",)] == [one.reasons for one in state.revisit]
        assert [OpenQuestion("q")] == [kept.value for kept in state.kept]

    run_async(main)


def test_a_result_that_is_kept_is_not_awaited_again() -> None:
    """A coroutine function's result is given again as any other's."""
    made: list[int] = []

    @tool(reads=True, cache_for=timedelta(hours=1))
    async def pull() -> int:
        await asyncio.sleep(0)
        made.append(1)
        return 7

    async def main() -> None:
        relay = a_relay()
        async with a_start(relay) as lead:
            found = [await lead.call(pull) for _ in range(2)]

        assert ([7, 7], 1) == (found, len(made))

    run_async(main)
