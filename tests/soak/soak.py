"""Many clients at one server for a while, with workers that are killed and one restart of the server.

    python -m tests.soak.soak --clients 200 --seconds 60

It ends with 0 if no acknowledged handoff was lost, everybody got on, listeners missed nothing and got nothing twice,
the server's memory stayed flat, SIGTERM let requests finish, and the ledger verifies. What it measured is printed.
"""

import argparse
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from batonpass.model.base.ids import HandoffId
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery

PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
PATIENCE: Final = 120.0  # for a condition that has to come; nothing is measured by it
KIND: Final = "handoff.initiated"
APP: Final = """
from batonpass import Relay

relay = Relay.open(".batonpass/ledger.db", home=".batonpass")
relay.register("worker", lambda run: run.task)
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is played."""

    clients: int
    seconds: float
    workers: int = 4
    listeners: int = 4
    pause: float = 0.0  # of a client after each handoff
    kill_every: float = 3.0  # seconds; a worker takes one of them to start


@dataclass(slots=True)
class Outcome:
    """What was seen. `problems` is empty if everything held."""

    acknowledged: int = 0
    killed: int = 0
    states: dict[str, int] = field(default_factory=dict)
    idle: int = 0
    drained: list[float] = field(default_factory=list)
    memory: tuple[float, float] = (0.0, 0.0)  # megabytes of the second server, early and late
    problems: list[str] = field(default_factory=list)


class Soak:
    """One play in a folder."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.outcome = Outcome()
        self.port = _free_port()
        self.stop = threading.Event()
        self.over = threading.Event()  # for listeners, who hear the end as well
        self.lock = threading.Lock()
        self.acknowledged: list[str] = []
        self.made = [0] * plan.clients  # since the restart
        self.heard: list[list[int]] = [[] for _ in range(plan.listeners)]
        self.sizes: list[float] = []
        self.server: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def play(self) -> Outcome:
        """Play all of it."""
        (self.folder / "app.py").write_text(APP)
        with Relay.open(self.folder / ".batonpass" / "ledger.db", home=self.folder / ".batonpass") as relay:
            permits = ["read:**"]
            tokens = [self._token(relay, f"user:c{one}", "agent", permits) for one in range(self.plan.clients)]
            auditor = self._token(relay, "user:auditor", "auditor", [])
            relay.store.sequence()
            with relay.store.view() as view:
                first = view.last_position()
            self._serve()
            self.workers = [self._work() for _ in range(self.plan.workers)]
            threads = [
                *(threading.Thread(target=self._client, args=one) for one in enumerate(tokens)),
                *(
                    threading.Thread(target=self._listen, args=(one, auditor, first))
                    for one in range(self.plan.listeners)
                ),
                threading.Thread(target=self._kill_workers),
                threading.Thread(target=self._weigh),
            ]
            for thread in threads:
                thread.start()
            try:
                self._go_on()
                self._restart()
                self._go_on()
            finally:
                self.stop.set()
            self._judge(relay, first, threads)
        return self.outcome

    def _go_on(self) -> None:
        """Wait half of the time, and then, on a slow machine, until every client has got something done."""
        time.sleep(self.plan.seconds / 2)
        _wait_for(lambda: all(self.made) and self.outcome.killed > 0)

    def _judge(self, relay: Relay, first: int, threads: list[threading.Thread]) -> None:
        listeners = threads[self.plan.clients : self.plan.clients + self.plan.listeners]
        for thread in (one for one in threads if one not in listeners):
            thread.join(PATIENCE)
            self._note(thread.is_alive(), f"{thread.name} does not end: a deadlock")
        self._settle(relay)
        relay.store.sequence()
        with relay.store.view() as view:
            query = ReceiptQuery(kind=KIND, first=first + 1, last=view.last_position())
            expected = [stored.position for stored in view.find_receipts(query)]
        _wait_for(lambda: all(heard[-1:] == expected[-1:] for heard in self.heard))
        self.over.set()
        self._note(self._end(self.workers) > 0, "a worker did not end at SIGTERM")
        self.outcome.drained.append(self._end_server())
        for thread in listeners:
            thread.join(PATIENCE)
        for number, heard in enumerate(self.heard):
            missed, twice = len(set(expected) - set(heard)), len(heard) - len(set(heard))
            self._note(
                heard != expected, f"listener {number} missed {missed} and got {twice} twice, of {len(expected)}"
            )
        self.outcome.acknowledged = len(self.acknowledged)
        self.outcome.idle = sum(made == 0 for made in self.made)
        self._note(self.outcome.idle > 0, f"{self.outcome.idle} clients got nothing done after the restart")
        self._judge_memory()
        relay.verify()

    def _settle(self, relay: Relay) -> None:
        """Wait until every acknowledged handoff was worked on: none is lost, whoever was killed over it."""
        waiting = set(self.acknowledged)
        states: Counter[str] = Counter()

        def all_done() -> bool:
            with relay.store.view() as view:
                for one in list(waiting):
                    state = view.get_handoff(HandoffId(one)).state
                    if state in {"completed", "failed"}:
                        states[state] += 1
                        waiting.discard(one)
            return not waiting

        _wait_for(all_done)
        self.outcome.states = {str(state): count for state, count in states.items()}
        self._note(bool(waiting), f"{len(waiting)} acknowledged handoffs were never finished")
        self._note(states["failed"] > 0, f"{states['failed']} acknowledged handoffs failed")

    def _judge_memory(self) -> None:
        quarter = len(self.sizes) // 4
        if quarter == 0:
            return
        early = sum(self.sizes[quarter : 2 * quarter]) / quarter
        late = sum(self.sizes[-quarter:]) / quarter
        self.outcome.memory = (round(early, 1), round(late, 1))
        self._note(late > early * 1.25 + 16, f"the server grew from {early:.0f} to {late:.0f} MB")

    def _note(self, wrong: bool, problem: str) -> None:  # noqa: FBT001 - a condition and its sentence
        if wrong:
            self.outcome.problems.append(problem)

    def _token(self, relay: Relay, principal: str, role: str, may: list[str]) -> str:
        made = relay.admin.add_token(
            principal, role, by="user:ana", lasts=timedelta(hours=1), may=may, may_delegate=may
        )
        return made.text

    def _serve(self) -> None:
        address = self.folder / "address"
        address.unlink(missing_ok=True)
        command = [PROGRAM, "serve", "--port", str(self.port), "--no-link", "--address-file", "address"]
        with (self.folder / "serve.log").open("ab") as log:
            self.server = server = subprocess.Popen(command, cwd=self.folder, stderr=log)

        def listens() -> bool:
            assert server.poll() is None, (self.folder / "serve.log").read_text()
            return address.exists()

        _wait_for(listens)

    def _end_server(self) -> float:
        assert self.server is not None
        began = time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        try:
            code = self.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            code = self.server.wait()
        self._note(code != 0, f"the server ended with {code} at SIGTERM")
        return round(time.monotonic() - began, 1)

    def _restart(self) -> None:
        self.outcome.drained.append(self._end_server())
        self._serve()
        with self.lock:
            self.made = [0] * self.plan.clients
            self.sizes.clear()

    def _weigh(self) -> None:
        while not self.stop.wait(0.5):
            server = self.server
            try:
                status = Path(f"/proc/{server.pid}/status").read_text() if server is not None else ""
            except OSError:
                continue
            found = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
            with self.lock:
                self.sizes += [int(one) / 1024 for one in found]

    def _work(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "work.log").open("ab") as log:
            command = [PROGRAM, "worker", "--app", "app:relay", "--lease", "5"]
            return subprocess.Popen(command, cwd=self.folder, stderr=log, stdout=log)

    def _kill_workers(self) -> None:
        while not self.stop.wait(self.plan.kill_every):
            number = random.randrange(len(self.workers))
            self.workers[number].kill()
            self.workers[number].wait()
            self.workers[number] = self._work()
            self.outcome.killed += 1

    def _end(self, processes: "list[subprocess.Popen[bytes]]") -> int:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        left = 0
        for process in processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                left += 1
        return left

    def _client(self, number: int, token: str) -> None:
        with closing(Asker(self.port, token, self.stop)) as asker:
            self._ask(asker, number)

    def _ask(self, asker: "Asker", number: int) -> None:
        begun = asker.post("/v1/runs", {"intent": f"Soak {number}"}, key=f"c{number}")
        if begun is None:
            return
        root, asker.proof = begun["run"]["id"], begun["proof"]
        step = 0
        while not self.stop.is_set():
            step += 1
            task = {"to": "worker", "task": f"Task {number}-{step}", "carrier": "worker", "may": ["read:x"]}
            told = asker.post(f"/v1/runs/{root}/handoffs", task, key=f"c{number}-{step}")
            if told is not None:
                with self.lock:
                    self.acknowledged.append(told["id"])
                    self.made[number] += 1
            self.stop.wait(self.plan.pause)

    def _listen(self, number: int, token: str, first: int) -> None:
        heard = self.heard[number]
        while not self.over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                headers = {"Authorization": f"Bearer {token}", "Last-Event-ID": str(heard[-1] if heard else first)}
                connection.request("GET", f"/v1/events?kind={KIND}", headers=headers)
                answer = connection.getresponse()
                while (line := answer.readline()) and not self.over.is_set():
                    if line.startswith(b"id:"):
                        heard.append(int(line[3:]))
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            self.over.wait(0.1)


class Asker:
    """A client that repeats what was not answered, with the same key, until it is."""

    def __init__(self, port: int, token: str, stop: threading.Event) -> None:
        self.proof = ""
        self._port = port
        self._token = token
        self._stop = stop
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, said: object, *, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the answer; None if the play is over before there is one."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Idempotency-Key": key}
        headers |= {"Batonpass-Proof": self.proof} if self.proof else {}
        while not self._stop.is_set():
            try:
                status, body = self._once(path, json.dumps(said), headers)
            except (OSError, http.client.HTTPException):
                self.close()
                self._stop.wait(0.1)
                continue
            if status < 300:
                return json.loads(body)
            if status not in {429, 503}:
                raise AssertionError(f"{path}: {status} {body!r}")
            self._stop.wait(0.1)
        return None

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(self, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Play, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    plan = Plan(clients=given.clients, seconds=given.seconds, pause=given.clients / 40)
    with tempfile.TemporaryDirectory(prefix="batonpass-soak-") as folder:
        outcome = Soak(Path(folder), plan).play()
    say(f"{plan.clients} clients, {plan.seconds:g} s, {outcome.killed} workers killed, one restart")
    say(f"  acknowledged handoffs  {outcome.acknowledged}, of which {outcome.states}")
    say(f"  the server drained in  {' and '.join(f'{one} s' for one in outcome.drained)}")
    say(f"  its memory             {outcome.memory[0]} MB, then {outcome.memory[1]} MB")
    for problem in outcome.problems:
        say(f"  WRONG: {problem}")
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    main()
