"""Workers as processes that are killed, frozen and asked to leave, while they work on a handoff."""

import json
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.model.base.lifecycle import State
from tests.integration.cli.fleet import LEASE, Fleet, a_fleet, stop, until
from tests.integration.cli.shell import PATIENCE

pytestmark = pytest.mark.slow

LEASE_FOR = timedelta(seconds=float(LEASE))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """Give a fleet on each store."""
    folder = tmp_path / "shop"
    folder.mkdir()
    sqlite = f"sqlite:///{tmp_path / 'ledger.db'}"
    with a_fleet(folder, sqlite if request.param == "sqlite" else request.getfixturevalue("postgres_url")) as fleet:
        yield fleet


def test_another_worker_goes_on_where_one_was_killed(fleet: Fleet) -> None:
    """SIGKILL in the middle: the lease runs out, the next worker finishes, and no finished call is made again."""
    offered = fleet.offer("careful")
    killed = fleet.work("--name", "killed")
    until(lambda: fleet.is_there("never.awaited"))
    killed.kill()
    other = fleet.work("--name", "other")
    until(lambda: offered.state() is State.COMPLETED)
    code, said, _ = stop(other)

    assert (0, "done at attempt 2") == (code, offered.result().value)
    assert ["first step", "second step"] == fleet.done()
    assert ["handoff.lapsed"] == fleet.kinds(offered.id)
    assert [("careful", "completed", 2)] == [
        (line["agent"], line["state"], line["attempt"]) for line in map(json.loads, said.splitlines())
    ]
    fleet.relay.verify()


def test_a_worker_that_was_frozen_delivers_nothing(fleet: Fleet) -> None:
    """SIGSTOP in a call: another finishes; thawed, the first one's outcome is kept as evidence and changes nothing."""
    offered = fleet.offer("stalling")
    frozen = fleet.work("--name", "frozen")
    until(lambda: fleet.is_there("late.awaited"))
    fleet.freeze(frozen)
    other = fleet.work("--name", "other")
    until(lambda: offered.state() is State.COMPLETED)
    (fleet.folder / "late").touch()
    frozen.send_signal(signal.SIGCONT)
    until(lambda: "handoff.late" in fleet.kinds(offered.id))
    code, said, _ = stop(frozen)

    assert (0, 0) == (code, stop(other)[0])
    assert ("done at attempt 2", 2) == (offered.result().value, offered.result().attempt)
    assert ["handoff.lapsed", "handoff.late"] == fleet.kinds(offered.id)
    assert [("lapsed", 1)] == [(line["state"], line["attempt"]) for line in map(json.loads, said.splitlines())]
    fleet.relay.verify()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_worker_that_is_asked_to_leave_finishes_first(fleet: Fleet, number: signal.Signals) -> None:
    """The handoff under way is finished, also if that takes longer than its lease; the next one is left to others."""
    current, following = fleet.offer("patient"), fleet.offer("careful")
    worker = fleet.work()
    until(lambda: fleet.is_there("now.awaited"))
    worker.send_signal(number)
    first = fleet.lease_until()
    until(lambda: fleet.lease_until() > first + LEASE_FOR)
    (fleet.folder / "now").touch()
    said, words = worker.communicate(timeout=PATIENCE)

    assert (0, State.COMPLETED, State.READY) == (worker.returncode, current.state(), following.state())
    assert (1, True) == (len(said.splitlines()), " works for careful, patient, stalling\n" in words)


def test_a_second_signal_ends_a_worker_at_once(fleet: Fleet) -> None:
    """As if it had died: another worker finishes what it had begun."""
    offered = fleet.offer("patient")
    worker = fleet.work()
    until(lambda: fleet.is_there("now.awaited"))

    def insist() -> bool:
        worker.send_signal(signal.SIGTERM)
        return worker.poll() is not None

    until(insist)
    (fleet.folder / "now").touch()
    other = fleet.work()
    until(lambda: offered.state() is State.COMPLETED)

    assert (-signal.SIGTERM, 2) == (worker.returncode, offered.result().attempt)
    assert 0 == stop(other)[0]
