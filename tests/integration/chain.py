"""A chain of three handoffs in a process that kills itself at one receipt; and the process that goes on afterwards."""

import os
import signal
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from batonpass.dispatch.worker import Worker
from batonpass.errors import CallInDoubtError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import CallId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import Settlement
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay, recording_of

HOPS: Final = ("a", "b", "c")
LEASE: Final = timedelta(seconds=0.4)
LONG: Final = timedelta(seconds=60)


class World:
    """What really happened, outside of the ledger."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, what: str) -> str:
        """Do something that must not be done twice."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        return what

    def lines(self) -> list[str]:
        """Return everything that happened, in order."""
        return self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []


class Chain:
    """What each agent of the chain does: a call, the next handoff, another call."""

    def __init__(self, relay: Relay, world: World, carrier: Carrier) -> None:
        self._relay = relay
        self._world = world
        self._carrier = carrier

    def lead(self) -> None:
        """Start the tree, or go on with the open one, to its end."""
        with self._relay.store.view() as view:
            open_root = next((run for run in view.find_runs() if run.parent is None), None)
        if open_root is None:
            lead = self._relay.start("Carry it through", by="user:ana", agent="lead")
        elif open_root.state is RunState.OPEN:
            lead = self._relay.resume(open_root.id)
        else:
            return
        with lead:
            self._pass_on(lead, 0)

    def work(self, run: LiveRun) -> None:
        """Work as one of the agents."""
        self._once(run, f"{run.agent} begins")
        self._pass_on(run, HOPS.index(run.agent) + 1)
        self._once(run, f"{run.agent} ends")
        run.report(f"{run.agent} is done")

    def _pass_on(self, run: LiveRun, hop: int) -> None:
        if hop == len(HOPS):
            return
        handoff = run.hand_off(HOPS[hop], f"Carry part {hop} of the load through", carrier=self._carrier)
        if self._carrier is Carrier.CALLER:
            with handoff as child:
                self.work(child)
        else:
            assert handoff.wait(LONG).delivered

    def _once(self, run: LiveRun, what: str) -> None:
        try:
            run.call(self._world.note, what)
        except CallInDoubtError as doubt:
            done = what in self._world.lines()
            run.settle(
                CallId(doubt.call), Settlement.SKIP if done else Settlement.REPEAT, by="user:ops", reason="looked"
            )
            run.call(self._world.note, what)


def die_at(store: Any, when: str, number: int) -> None:  # noqa: ANN401 - any store
    """Let the process kill itself right before or right after its how-manyth append."""
    append, lock = store.append, threading.Lock()
    appended = 0

    def deadly(entries: Sequence[Entry]) -> None:
        nonlocal appended
        with lock:
            appended += 1
            if appended == number and when == "BEFORE":
                os.kill(os.getpid(), signal.SIGKILL)
            append(entries)
            if appended == number:
                os.kill(os.getpid(), signal.SIGKILL)

    store.append = deadly


def main(ledger: str, home: str, world: str, carrier: str, *deadly: str) -> None:
    """Start a tree, or go on with the open one, and end when its root is closed."""
    with Relay.open(ledger, home=Path(home)) as relay:
        chain = Chain(relay, World(Path(world)), Carrier(carrier))
        for agent in HOPS:
            relay.register(agent, chain.work)
        recording_of(relay)
        if deadly:
            die_at(relay.store, deadly[0], int(deadly[1]))
        if carrier == Carrier.CALLER:
            chain.lead()
            return
        stop = threading.Event()
        # One worker for each agent: each waits for the next one.
        workers = [Worker(relay, name=f"worker-{agent}", agents=[agent], lease_for=LEASE) for agent in HOPS]
        threads = [
            threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(milliseconds=20)})
            for worker in workers
        ]
        for thread in threads:
            thread.start()
        try:
            chain.lead()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
