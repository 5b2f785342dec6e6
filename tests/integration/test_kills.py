"""SIGKILL at every receipt of a chain of three handoffs: what was acknowledged is there, nothing is doubled."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from batonpass.handoff.history.past_calls import read_runs
from batonpass.model.base.ids import StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from tests.children import FORKS
from tests.integration import chain
from tests.integration.chain import HOPS, World
from tests.postgres_server import TEMPLATE, Server

EVERYTHING: Final = sorted(f"{agent} {what}" for agent in HOPS for what in ("begins", "ends"))

# start, and for each hop: offer, acceptance, two calls of two receipts each, close-out; at last the root's close-out.
RECEIPTS: Final = 1 + len(HOPS) * 7 + 1

# Between two receipts nothing happens but the calls themselves. So right after a receipt is where a process dies before
# the next one, except after a request, where the call has not been made yet, and after the last.
REQUESTS: Final = (4, 8, 12, 14, 17, 20)
DEATHS: Final = (
    *(("BEFORE", number) for number in range(1, RECEIPTS + 1)),
    *(("AFTER", number) for number in (*REQUESTS, RECEIPTS)),
)
PARTS: Final = 6

Places = Callable[[], Iterator[str]]


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
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_any_receipt_loses_and_doubles_nothing_on_sqlite(tmp_path: Path, carrier: Carrier, part: int) -> None:
    """Whichever receipt a process dies at, another goes on and everything has happened exactly once."""
    for when, number in DEATHS[part::PARTS]:
        directory = tmp_path / f"{when}-{number}"
        kill_and_go_on(f"sqlite:///{directory}/ledger.db", directory, carrier, when, str(number))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("carrier", Carrier)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_any_receipt_loses_and_doubles_nothing_on_postgresql(
    tmp_path: Path, postgres: Server, carrier: Carrier, part: int
) -> None:
    """The same on PostgreSQL."""
    for when, number in DEATHS[part::PARTS]:
        with postgres.database(TEMPLATE) as name:
            kill_and_go_on(postgres.url(name), tmp_path / f"{when}-{number}", carrier, when, str(number))


@pytest.mark.slow
def test_a_request_is_what_a_call_lies_behind(tmp_path: Path) -> None:
    """Whoever dies right after one of these receipts has asked for a call, and not made it."""
    for made, number in enumerate(REQUESTS):
        directory = tmp_path / f"{number}"
        directory.mkdir()
        place = f"sqlite:///{directory}/ledger.db"
        run_chain(place, directory, Carrier.CALLER, "AFTER", str(number))
        with Relay.open(place, home=directory) as relay:
            doubts = in_doubt(relay)

        assert (["note"], made) == (doubts, len(World(directory / "world.txt").lines()))
