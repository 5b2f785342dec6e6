"""SIGKILL between a hold, its approval and its use: what waited is there, and is made once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from batonpass.errors import CallSuspendedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import Kind
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.children import FORKS
from tests.postgres_server import TEMPLATE, Server

LONG: Final = timedelta(minutes=10)
STRICT: Final = Policy(enforce=True, proven=False)
STORES: Final = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
MOMENTS: Final = ["after the hold", "after the approval", "while the call is made"]


def work(run: LiveRun, world: Path, *, dies: bool = False) -> None:
    """Hand off a task whose agent deploys something, two levels down."""

    def deploy(place: str) -> None:
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        with world.open("a", encoding="utf-8") as file:
            file.write(f"{place}\n")

    with (
        run.hand_off("middle", "most", criteria=["done"]) as middle,
        middle.hand_off("bottom", "some", criteria=["done"]) as bottom,
    ):
        bottom.call(tool("deploy", reversible=False, idempotent=True, target="place")(deploy), "prod")


def hold(place: str, home: str, world: str) -> None:
    """Work until a call is held, and die there, with every block still open."""
    with Relay.open(place, home=home, policy=STRICT) as relay, relay.start("Ship", by="user:ana") as lead:
        with pytest.raises(CallSuspendedError):
            work(lead, Path(world))
        os.kill(os.getpid(), signal.SIGKILL)


def approve(place: str, home: str, _: str) -> None:
    """Approve what waits, and die at once."""
    with Relay.open(place, home=home, policy=STRICT) as relay:
        relay.handoff("bottom").approve(by="user:ben")
        os.kill(os.getpid(), signal.SIGKILL)


def use(place: str, home: str, world: str) -> None:
    """Go on, and die in the middle of the approved call."""
    with Relay.open(place, home=home, policy=STRICT) as relay:
        work(relay.resume(), Path(world), dies=True)


def killed(target: object, *arguments: str) -> None:
    """Run a process that kills itself."""
    process = FORKS.Process(target=target, args=arguments)  # type: ignore[arg-type]
    process.start()
    process.join(timeout=120)
    assert -signal.SIGKILL == process.exitcode


@contextmanager
def a_ledger(store: str, directory: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of an empty ledger."""
    if store == "sqlite":
        yield f"sqlite:///{directory}/ledger.db"
        return
    server: Server = request.getfixturevalue("postgres")
    with server.database(TEMPLATE) as name:
        yield server.url(name)


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_death_denies_nothing(tmp_path: Path, store: str, moment: str, request: pytest.FixtureRequest) -> None:
    """Whenever its processes die, the call waits, goes on after the approval, and happens once."""
    world = tmp_path / "world.txt"
    with a_ledger(store, tmp_path, request) as place:
        arguments = (place, str(tmp_path / "home"), str(world))
        killed(hold, *arguments)
        with Relay.open(place, home=tmp_path / "home", policy=STRICT) as relay:
            assert State.HELD is relay.handoff("bottom").state()
        if moment == MOMENTS[0]:
            with Relay.open(place, home=tmp_path / "home", policy=STRICT) as relay:
                relay.handoff("bottom").approve(by="user:ben")
        else:
            killed(approve, *arguments)
        if moment == MOMENTS[2]:
            killed(use, *arguments)
        with Relay.open(place, home=tmp_path / "home", policy=STRICT) as relay:
            with relay.resume() as lead:
                work(lead, world)
            with relay.store.view() as view:
                states = {handoff.to: handoff.state for handoff in view.find_handoffs()}
                root = view.get_run(lead.id)
                denied = list(view.find_receipts(ReceiptQuery(kind=Kind.HANDOFF_DENIED)))
            relay.verify()

    assert {"middle": State.COMPLETED, "bottom": State.COMPLETED} == states
    assert (RunState.COMPLETED, [], "prod\n") == (root.state, denied, world.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_a_worker_takes_what_a_dead_lead_had_held(tmp_path: Path, store: str, request: pytest.FixtureRequest) -> None:
    """A handoff that was held at its offer is ready after the approval, although nobody is left who asked."""
    with a_ledger(store, tmp_path, request) as place:
        killed(offer, place, str(tmp_path / "home"), "")
        with Relay.open(place, home=tmp_path / "home") as relay:
            relay.register("mailer", lambda _: "told")
            waiting = relay.handoff("mailer")
            waiting.approve(by="user:ana")
            assert State.READY is waiting.state()
            lease = relay.claim(holder="w", lease_for=LONG)
            assert lease is not None
            assert "told" == relay.handoff(lease).run(lease=lease).value
            relay.verify()


def offer(place: str, home: str, _: str) -> None:
    """Offer something that is held, and die."""
    with Relay.open(place, home=home) as relay, relay.start("Tell everybody", by="user:ana") as lead:
        lead.hand_off("mailer", "Tell them", carrier=Carrier.WORKER, hold=True)
        os.kill(os.getpid(), signal.SIGKILL)
