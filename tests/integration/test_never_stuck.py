"""What waits for a person or for a time goes on, in real processes: told, decided, woken, and served again."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from batonpass.dispatch.worker import Worker
from batonpass.errors import CallSuspendedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Decision
from batonpass.relay import Relay
from tests.children import FORKS
from tests.integration.cli.shell import PROGRAM, surroundings
from tests.integration.waiting import PATIENCE, TWO, approve_together, work_nested, work_too_long
from tests.postgres_server import Server

TELL: Final = """
import json, os, pathlib, signal, sys
place, dies = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
with place.open("a", encoding="utf-8") as file:
    file.write(json.loads(sys.stdin.read())["id"] + "\\n")
if dies.exists():
    dies.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
"""
ROUNDS: Final = 3

pytestmark = pytest.mark.slow


def until(so: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.02)


def test_a_notifier_that_is_killed_after_its_command_tells_again(tmp_path: Path) -> None:
    """At least once: `batonpass notify` dies before it has noted the delivery, and the next one repeats it."""
    told, dies = tmp_path / "told.txt", tmp_path / "dies"
    (tmp_path / "tell.py").write_text(TELL, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "tell.py"), str(told), str(dies)]
    (tmp_path / "batonpass.toml").write_text(f"[notify]\ncommand = {json.dumps(command)}\n", encoding="utf-8")
    url = f"sqlite:///{tmp_path}/.batonpass/ledger.db"
    with Relay.open(url, home=tmp_path / ".batonpass") as relay:
        lead = relay.start("Tell everybody", by="user:ana")
        lead.hand_off("mailer", "Tell them", hold=True)
        lead.hand_off("mailer", "Tell others", hold=True)
    dies.touch()

    def notify() -> int:
        arguments = [*PROGRAM, "notify", "--once"]
        return subprocess.run(
            arguments, cwd=tmp_path, env=surroundings(), capture_output=True, timeout=PATIENCE, check=False
        ).returncode

    assert [-signal.SIGKILL, 0, 0] == [notify(), notify(), notify()]
    first, second, third = told.read_text(encoding="utf-8").split()
    assert (first, True) == (second, third != first)


@pytest.mark.parametrize("carrier", ["caller", "worker"])
def test_whoever_waits_is_woken_by_the_deadline_itself(tmp_path: Path, carrier: str) -> None:
    """Nobody sweeps and nobody answers: the wait has no time limit of its own, and ends when the time is up."""
    url, home = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "home"
    mine, its = FORKS.Pipe()
    with Relay.open(url, home=home) as relay:
        relay.introduce(Card(agent=AgentId("editor")))
        lead = relay.start("Edit it", by="user:ana")
        process = FORKS.Process(target=work_too_long, args=(url, str(home), its))
        process.start()
        mine.recv()
        handoff = lead.hand_off("editor", "a part", carrier=carrier, deadline=timedelta(seconds=1.5))
        if carrier == "caller":
            mine.send(handoff.id)
            until(lambda: handoff.state() is State.RUNNING)
        try:
            began = time.monotonic()
            result = handoff.wait()
        finally:
            process.kill()
            process.join()

        assert State.EXPIRED is result.state
        assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_two_people_who_approve_at_the_same_moment_are_enough(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Two processes, three calls and three handoffs that take two people each: none of them waits for a third word."""
    url = f"sqlite:///{tmp_path}/ledger.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    home, together = tmp_path / "home", FORKS.Barrier(2)
    made: list[str] = []
    deploy = tool("deploy", target="place")(lambda place: made.append(str(place)))
    with Relay.open(url, home=home, policy=TWO) as relay:
        lead = relay.start("Ship", by="user:ana")
        lines = [FORKS.Pipe() for _ in range(2)]
        people = [
            FORKS.Process(target=approve_together, args=(url, str(home), who, together, line))
            for who, (_, line) in zip(("user:ben", "user:eve"), lines, strict=True)
        ]
        for person in people:
            person.start()
        for number in range(ROUNDS):
            with pytest.raises(CallSuspendedError) as held:
                lead.call(deploy, f"place {number}")
            handoff = lead.hand_off("shipper", f"ship {number}", criteria=["done"])
            for name in (held.value.call, handoff.id):
                for line, _ in lines:
                    line.send(name)
                assert ["done", "done"] == [line.recv() for line, _ in lines]
            lead.call(deploy, f"place {number}")
            assert State.OFFERED is handoff.state()
        for line, _ in lines:
            line.send("")
        for person in people:
            person.join(PATIENCE)
        relay.verify()

    assert [f"place {number}" for number in range(ROUNDS)] == made


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_running_session_is_told_what_a_person_refutes_at_a_shell(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Ben refutes a result of last week by a command: the session that builds on it is told, and so is its child."""
    url = f"sqlite:///{tmp_path}/ledger.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    home = tmp_path / "home"
    with Relay.open(url, home=home) as relay:
        with relay.start("Bill", by="user:ana", series="weekly") as first:
            rate = first.hand_off("finder", "Find the rate")
            with rate as finder:
                finder.report("3 %", decisions=[Decision("use 3 %")])
        lead = relay.start("Bill again", by="user:ana", series="weekly")
        adder = lead.hand_off("adder", "Add it up").accept()
        arguments = ["handoff", "refute", rate.id, "--reason", "it is 2.5 %", "--by", "user:ben"]
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=tmp_path,
            env=surroundings(BATONPASS_LEDGER=url, BATONPASS_HOME=str(home)),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        told = [[line for one in run.revisions() for line in one.fallen] for run in (lead, adder)]
        lead.acknowledge()
        adder.acknowledge()
        adder.close()
        lead.close()
        relay.verify()

    fallen = 'the decision "use 3 %": refuted: user:ben refuted the result of finder, attempt 1: it is 2.5 %'
    assert (0, [[fallen], [fallen]]) == (done.returncode, told), done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_parents_that_wait_for_children_finish_with_as_many_workers(tmp_path: Path, workers: int) -> None:
    """Two parents that each wait for a child of their own, and one or two processes that work."""
    url, home = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "home"
    with Relay.open(url, home=home) as relay:
        for agent in ("parent", "child"):
            relay.introduce(Card(agent=AgentId(agent)))
        lead = relay.start("Nest", by="user:ana")
        parents = [lead.hand_off("parent", name, carrier="worker") for name in ("one", "two")]
        processes = [FORKS.Process(target=work_nested, args=(url, str(home))) for _ in range(workers)]
        for process in processes:
            process.start()
        try:
            found = [parent.wait(timedelta(seconds=PATIENCE)).value for parent in parents]
        finally:
            for process in processes:
                process.kill()
                process.join()
        with relay.store.view() as view:
            counted = [known.attempt for known in view.find_handoffs() if known.to == "child"]
        relay.verify()

    assert (["ONE", "TWO"], [1, 1]) == (found, counted)


@pytest.mark.postgres
def test_a_worker_lives_through_a_server_that_is_away_and_still_starting(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    """The server is killed under a worker that waits, recovers, and is asked while it does: the worker goes on."""
    stop = threading.Event()
    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.register("editor", lambda run: run.task)
        lead = relay.start("Edit it", by="user:ana")
        worker = Worker(relay)
        thread = threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(milliseconds=20)})
        thread.start()
        first = lead.hand_off("editor", "one", carrier="worker")
        until(lambda: first.result().delivered)
        postgres.stop(how=signal.SIGQUIT)
        time.sleep(0.5)
        postgres.start()
        second = lead.hand_off("editor", "two", carrier="worker")
        until(lambda: second.result().delivered)
        stop.set()
        thread.join(PATIENCE)
        relay.verify()

    assert not thread.is_alive()
