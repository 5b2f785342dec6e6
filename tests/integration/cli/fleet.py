"""A fleet of real processes: an app in a folder, workers that a test starts, freezes and kills, and their ledger."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.ids import HandoffId, StreamId
from batonpass.model.base.lifecycle import Carrier
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.integration.cli.shell import PATIENCE, PROGRAM, surroundings

LEASE: Final = "0.3"

# Each call leaves a line in `done`. What an attempt is to wait for is a file that the test makes.
APP: Final = """
import os, time
from datetime import datetime
from pathlib import Path
from batonpass.relay import Relay

here = Path(__file__).parent
relay = Relay.open(os.environ["APP_LEDGER"], home=here / "keys")

def note(what):
    with (here / "done").open("a") as file:
        file.write(what + "\\n")
    return what

def wait_for(name):
    (here / f"{name}.awaited").touch()
    while not (here / name).exists():
        time.sleep(0.005)
    return name

def careful(run):
    run.call(note, "first step")
    if run.attempt == 1:
        wait_for("never")
    run.call(note, "second step")
    return f"done at attempt {run.attempt}"

def stalling(run):
    if run.attempt == 1:
        run.call(wait_for, "late")
    return f"done at attempt {run.attempt}"

def patient(run):
    wait_for("now")
    return "finished"

for runner in (careful, stalling, patient):
    relay.register(runner.__name__, runner)
"""


@dataclass
class Fleet:
    """A folder with an app in it, its ledger, and the workers that were started there."""

    folder: Path
    url: str
    relay: Relay
    lead: LiveRun
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def offer(self, to: str) -> LiveHandoff:
        """Hand a task to whichever worker takes it."""
        return self.lead.hand_off(to, "Make total() round half-even", carrier=Carrier.WORKER)

    def work(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a worker."""
        worker = subprocess.Popen(
            [*PROGRAM, "worker", "--app", "app:relay", "--lease", LEASE, "--json", *arguments],
            cwd=self.folder,
            env=surroundings(APP_LEDGER=self.url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.workers.append(worker)
        return worker

    def freeze(self, worker: subprocess.Popen[str]) -> None:
        """Stop a worker between two writes: with the lock of a file in its hand, it would stop everybody."""

        def frozen() -> bool:
            worker.send_signal(signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            if not any(map(_is_locked, self.folder.parent.rglob("*.lock"))):
                return True
            worker.send_signal(signal.SIGCONT)
            return False

        until(frozen)

    def lease_until(self) -> datetime:
        """Return when the lease that is held runs out."""
        with self.relay.store.view() as view:
            (lease,) = view.find_leases()
        return lease.until

    def is_there(self, name: str) -> bool:
        """Return whether a file was made in the folder."""
        return (self.folder / name).exists()

    def done(self) -> list[str]:
        """Return which calls were made, in order."""
        return (self.folder / "done").read_text(encoding="utf-8").splitlines()

    def kinds(self, handoff: HandoffId) -> list[str]:
        """Return what happened to a handoff, in its own stream."""
        with self.relay.store.view() as view:
            return [stored.kind for stored in view.find_receipts(ReceiptQuery(stream=StreamId(handoff)))]


@contextmanager
def a_fleet(folder: Path, url: str) -> Iterator[Fleet]:
    """Give a fleet, and end every worker that is left."""
    (folder / "app.py").write_text(APP, encoding="utf-8")
    with Relay.open(url, home=folder / "keys") as relay:
        fleet = Fleet(folder, url, relay, relay.start("Fix invoice rounding", by="user:ana"))
        try:
            yield fleet
        finally:
            for worker in fleet.workers:
                if worker.poll() is None:
                    os.kill(worker.pid, signal.SIGCONT)
                    worker.kill()
                worker.communicate(timeout=PATIENCE)


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, and fail if it never does."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


def stop(worker: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ask a worker to leave; return its exit code and what it printed."""
    worker.send_signal(signal.SIGTERM)
    said, words = worker.communicate(timeout=PATIENCE)
    return worker.returncode, said, words
