"""A durable handoff over HTTP: offer, accept, close as three requests, against the same acts in one process."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from batonpass.relay import Relay
from bench import batons
from bench.effort import Effort
from bench.measure import Act, Contender, race_in_turns, time_in_turns
from bench.table import Row, p50, pace, rate

IN_FLIGHT: Final = 16
_PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
_PERMITS: Final = ("write:src/**", "read:**")
_PATIENCE: Final = 60.0


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure handoffs over HTTP and in this process: one after the other, and many in flight."""
    with served(scratch / "served") as (port, relay), batons.open_relay(scratch / "here") as here:
        contenders = {"http": hands_off(relay, port), "here": batons.hands_off(here)}
        taken = time_in_turns(contenders, turns=effort.turns // 2, acts=max(effort.acts // 5, 1))
        racing = {
            "http": Contender(make=lambda _: hands_off(relay, port), threads=IN_FLIGHT),
            "here": Contender(make=lambda _: batons.hands_off(here), threads=IN_FLIGHT),
        }
        rates = race_in_turns(racing, turns=effort.race_turns, seconds=effort.race_seconds)
    process = "the same in process"
    return [
        Row(
            what="handoff over HTTP: offer, accept, close; p50",
            ours=p50(taken["http"]),
            against=process,
            theirs=p50(taken["here"]),
        ),
        Row(what="handoffs a second over HTTP", ours=pace(taken["http"]), against=process, theirs=pace(taken["here"])),
        Row(
            what=f"handoffs a second over HTTP, {IN_FLIGHT} clients",
            ours=rate(rates["http"]),
            against=process,
            theirs=rate(rates["here"]),
        ),
    ]


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, Relay]]:
    """Start a server over a new ledger; return its port, and a relay that makes tokens for it."""
    folder.mkdir()
    home = folder / ".batonpass"
    command = [_PROGRAM, "serve", "--port", "0", "--no-link", "--address-file", "address"]
    with Relay.open(home / "ledger.db", home=home) as relay:
        relay.admin.identity()
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as server:
            try:
                yield _port(folder / "address"), relay
            finally:
                server.terminate()


def _port(address: Path) -> int:
    until = time.monotonic() + _PATIENCE
    while not (address.exists() and address.read_text()):
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.02)
    return int(address.read_text().rpartition(":")[2])


def hands_off(relay: Relay, port: int) -> Act:
    """Return the act of one client: hand off, accept, close, each a request that is answered when it is durable."""
    token = relay.admin.add_token(
        "user:ana", "agent", by="user:ana", lasts=timedelta(hours=1), may=_PERMITS, may_delegate=_PERMITS
    )
    client = Client(port, token.text)
    begun = client.post("/v1/runs", {"intent": batons.INTENT}, "")
    root, proof = begun["run"]["id"], begun["proof"]
    numbers = count()

    def hand_off() -> None:
        task = {"to": "editor", "task": f"Round line {next(numbers)}", "may": ["write:src/**"]}
        offered = client.post(f"/v1/runs/{root}/handoffs", task, proof)
        child = client.post(f"/v1/handoffs/{offered['id']}/attempts", {}, proof)
        client.post(f"/v1/runs/{child['run']['id']}/close", {}, child["proof"])

    return hand_off


class Client:
    """A client with one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, said: object, proof: str) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the answer."""
        headers = {**self._headers, **({"Batonpass-Proof": proof} if proof else {})}
        self._connection.request("POST", path, json.dumps(said), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status // 100 != 2:
            raise ConnectionError(body)
        return json.loads(body)
