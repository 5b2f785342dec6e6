"""Threads of our own: what others do with the loop's executor does not keep us waiting."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from batonpass import AsyncRelay
from batonpass.aio.threads import in_thread


def test_acts_go_on_while_others_fill_the_executor_of_the_loop() -> None:
    """A program may give all threads of the loop to something that waits for us."""

    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        done = threading.Event()
        waiting = loop.run_in_executor(None, done.wait)
        async with AsyncRelay.open("memory:") as relay, relay.start("Begin", by="user:ana") as lead:
            handoff = await lead.hand_off("editor", "Make it so")
            state = await handoff.state()
        done.set()
        await waiting
        return str(state)

    assert "offered" == asyncio.run(main())


def test_a_child_process_has_threads_of_its_own() -> None:
    """No thread lives on in a forked process: what is given to those of its parent would wait for ever."""
    assert os.getpid() == asyncio.run(in_thread(os.getpid))
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.run(in_thread(os.getpid)) == os.getpid() else 1)

    assert 0 == os.waitpid(child, 0)[1]
