"""The first byte of each view of the page in a ledger of a million receipts, from a server as people have it."""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlencode

from batonpass.drift.rollup import keep_up
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from bench.drifting import AGENTS
from bench.effort import Effort
from bench.ledgers import LEAD_HANDOFFS, count_receipts, fill_with_handoffs, scribe_of
from bench.ledgers import fill as fill_with_calls
from bench.measure import Samples
from bench.table import Figure, Row, Unit, p95, within

LOOKS: Final = 20
_DAYS: Final = 42
_GOAL: Final = 0.2
_LARGEST: Final = 200 * 1024
_PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
_PATIENCE: Final = 60.0
_FORM: Final = "application/x-www-form-urlencoded"
_OK: Final = 200


class LookedAt:
    """What one view took: until its first byte, of the server's processor, and how large it is."""

    def __init__(self, seconds: Sequence[float], cpu: float, size: int) -> None:
        self.samples, self.cpu, self.size = Samples(tuple(seconds)), cpu, size


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure every view, each by its first byte; of all of them the one that costs most and the largest one."""
    written = fill(scratch, effort.grown[-1])
    found = look(scratch, LOOKS)
    about = f"{written:,} receipts"
    costly = max(found, key=lambda view: found[view].cpu)
    large = max(found, key=lambda view: found[view].size)
    return [
        *(
            Row(
                what=f"the page, {view}, {about}, first byte, p95",
                ours=p95(seen.samples),
                against="",
                theirs=None,
                goal=within(_GOAL),
            )
            for view, seen in found.items()
        ),
        Row(
            what=f"the page, its most costly view ({costly}), {about}, processor time",
            ours=Figure(found[costly].cpu, Unit.SECONDS),
            against="",
            theirs=None,
            goal=within(_GOAL),
        ),
        Row(
            what=f"the page, its largest view ({large}), {about}",
            ours=Figure(found[large].size, Unit.BYTES),
            against="at most",
            theirs=Figure(_LARGEST, Unit.BYTES),
        ),
    ]


def fill(folder: Path, receipts: int) -> int:
    """Make a ledger of six weeks in a folder, whose roll-ups are kept; return how many receipts it has.

    Three in ten receipts are of handoffs, the others of calls, as in the ledgers that people have.
    """
    home = folder / ".batonpass"
    handoffs, calls = receipts // 10 // _DAYS, receipts * 7 // 10 // _DAYS
    with Relay.open(home / "ledger.db", home=home) as relay:
        clock = FrozenClock(datetime.now(UTC) - timedelta(days=_DAYS))
        scribe = scribe_of(relay, home, clock)
        for _ in range(_DAYS):
            clock.tick(timedelta(days=1))
            fill_with_handoffs(scribe, handoffs, agents=AGENTS, leads=max(1, handoffs // LEAD_HANDOFFS))
            fill_with_calls(scribe, calls)
        keep_up(relay.store)
        return count_receipts(scribe)


def look(folder: Path, times: int) -> Mapping[str, LookedAt]:
    """Return what each view took, looked at so many times by one operator after the other."""
    home = folder / ".batonpass"
    with Relay.open(home / "ledger.db", home=home) as relay:
        token = relay.admin.add_token("user:ana", "operator", by="user:ana", lasts=timedelta(hours=1)).text
        views = _views(relay)
    with _served(folder) as (port, pid):
        visit = _Visit(port, token)
        for address in views.values():
            visit.look(address)  # what is only once, such as compiling a template
        return {name: _looked_at(visit, pid, address, times) for name, address in views.items()}


def _views(relay: Relay) -> dict[str, str]:
    with relay.store.view() as view:
        handoff = next(iter(view.find_handoffs(limit=1)))
        receipt = view.get_receipt_at(handoff.parent, 1).id  # type: ignore[arg-type]
    task = f"/tasks/{handoff.root}"
    return {
        "now": "/",
        "tasks": "/tasks",
        "tree": task,
        "tree in time": f"{task}?as=time",
        "tree as a list": f"{task}?as=list",
        "tree as a trail": f"{task}?as=trail",
        "handoffs": "/handoffs?state=completed",
        "handoff": f"/handoffs/{handoff.id}",
        "attempts of a handoff": f"/handoffs/{handoff.id}?part=attempts",
        "calls of a handoff": f"/handoffs/{handoff.id}?part=calls",
        "briefing of a handoff": f"/handoffs/{handoff.id}?part=briefing",
        "approvals": "/approvals",
        "blame of words": "/blame?text=nobody+wrote+this",
        "blame of a digest": f"/blame?digest={'ab' * 32}",
        "review": "/review",
        "drift": "/drift",
        "drift of an agent": f"/drift/{handoff.to}",
        "ledger": "/ledger",
        "ledger by kind and agent": f"/ledger?kind=handoff&agent={handoff.to}",
        "ledger by words": "/ledger?q=nobody+wrote+this",
        "receipt": f"/ledger/receipts/{receipt}",
        "seals": "/ledger/seals",
        "agents": "/agents",
        "agent": f"/agents/{handoff.to}",
        "policy": "/policy",
        "find": "/find?q=nobody+wrote+this",
    }


def _looked_at(visit: "_Visit", pid: int, address: str, times: int) -> LookedAt:
    before = _cpu(pid)
    taken, sizes = zip(*(visit.look(address) for _ in range(times)), strict=True)
    return LookedAt(taken, (_cpu(pid) - before) / times, int(median(sizes)))


def _cpu(pid: int) -> float:
    """Return the seconds of processor that a process has used; Linux only, else 0."""
    file = Path(f"/proc/{pid}/stat")
    if not file.exists():
        return 0.0
    fields = file.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Visit:
    """Somebody who has come in, over one connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        origin = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": _FORM}
        self._connection.request("POST", "/session", urlencode({"token": token, "to": "/"}), origin)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = re.split(";", answer.headers["set-cookie"])[0]

    def look(self, address: str) -> tuple[float, int]:
        """Return how long the first byte took, and how many there are."""
        began = time.perf_counter()
        self._connection.request("GET", address, headers={"Cookie": self._cookie, "Sec-Fetch-Site": "same-origin"})
        answer = self._connection.getresponse()
        took = time.perf_counter() - began
        size = len(answer.read())
        if answer.status != _OK:
            raise RuntimeError(f"{address} answered {answer.status}")
        return took, size


@contextmanager
def _served(folder: Path) -> Iterator[tuple[int, int]]:
    """Serve the ledger of a folder; return the port and the process."""
    address = folder / "address"
    address.unlink(missing_ok=True)
    command = [_PROGRAM, "serve", "--port", "0", "--no-link", "--address-file", "address"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + _PATIENCE
            while not (address.exists() and address.read_text()):
                if time.monotonic() > until:
                    raise TimeoutError
                time.sleep(0.02)
            yield int(address.read_text().rpartition(":")[2]), server.pid
        finally:
            server.terminate()
