"""SIGKILL at every receipt of a chain of three handoffs: what was acknowledged is there, nothing is doubled."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from batonpass.handoff.resuming import read_runs
from batonpass.model.ids import StreamId
from batonpass.model.lifecycle import Carrier, State
from batonpass.model.run import RunState
from batonpass.relay import Relay
from tests.integration import chain
from tests.integration.chain import HOPS, World
from tests.postgres_server import TEMPLATE, Server

EVERYTHING: Final = sorted(f"{agent} {what}" for agent in HOPS for what in ("begins", "ends"))

# start, and for each hop: offer, acceptance, two calls of two receipts each, close-out; at last the root's close-out.
RECEIPTS: Final = 1 + len(HOPS) * 7 + 1

Places = Callable[[], Iterator[str]]


# Seven hundred processes, each real and killed for good; forked from one that has imported everything already.
FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.integration.chain"])


def run_chain(place: str, directory: Path, carrier: Carrier, *deadly: str) -> int | None:
    """Run the chain in a process of its own and return how it ended."""
    arguments = (place, str(directory), str(directory / "world.txt"), carrier.value, *deadly)
    process = FORKS.Process(target=chain.main, args=arguments)
    process.start()
    process.join(timeout=120)
    return process.exitcode


def in_doubt(relay: Relay) -> list[str]:
    """Return the calls of which nobody knows whether they happened."""
    with relay.store.view() as view:
        runs = [run for run in view.find_runs() if run.handoff is not None]
        return [call.tool for run in runs for call in read_runs(view, [run], StreamId(run.handoff or "")).in_doubt]


def kill_and_go_on(place: str, directory: Path, carrier: Carrier, *deadly: str) -> None:
    """Kill the chain at one receipt, go on in another process, and look at what is there."""
    directory.mkdir()
    assert -signal.SIGKILL == run_chain(place, directory, carrier, *deadly)
    with Relay.open(place, home=directory) as relay:
        before = relay.verify().receipts
        doubts = in_doubt(relay)
    assert len(doubts) <= 1
    assert 0 == run_chain(place, directory, carrier)

    with Relay.open(place, home=directory) as relay:
        after = relay.verify()
        with relay.store.view() as view:
            roots = [run.state for run in view.find_runs() if run.parent is None]
            handoffs = {handoff.to: handoff.state for handoff in view.find_handoffs()}
            ended = {run.state for run in view.find_runs()}
    assert [RunState.COMPLETED] == roots
    assert dict.fromkeys(HOPS, State.COMPLETED) == handoffs
    assert EVERYTHING == sorted(World(directory / "world.txt").lines())
    assert RunState.OPEN not in ended
    assert before <= after.receipts


@pytest.mark.slow
@pytest.mark.parametrize("carrier", Carrier)
@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
@pytest.mark.parametrize("part", range(4))
def test_a_kill_at_any_receipt_loses_and_doubles_nothing_on_sqlite(
    tmp_path: Path, carrier: Carrier, when: str, part: int
) -> None:
    """Whichever receipt a process dies at, another goes on and everything has happened exactly once."""
    for number in range(1 + part, RECEIPTS + 1, 4):
        directory = tmp_path / f"{number}"
        kill_and_go_on(f"sqlite:///{directory}/ledger.db", directory, carrier, when, str(number))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("carrier", Carrier)
@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
@pytest.mark.parametrize("part", range(4))
def test_a_kill_at_any_receipt_loses_and_doubles_nothing_on_postgresql(
    tmp_path: Path, postgres: Server, carrier: Carrier, when: str, part: int
) -> None:
    """The same on PostgreSQL."""
    for number in range(1 + part, RECEIPTS + 1, 4):
        with postgres.database(TEMPLATE) as name:
            kill_and_go_on(postgres.url(name), tmp_path / f"{number}", carrier, when, str(number))
