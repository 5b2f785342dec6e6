"""Several processes on one ledger: racing, killed, frozen and woken. Everything acknowledged is there, once."""

import json
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.relay import Relay, recording_of
from batonpass.store.factory import open_store
from batonpass.store.port import ReceiptQuery
from tests.children import FORKS
from tests.integration import writing
from tests.postgres_server import Server

RECEIPTS = 8_000
PROCESSES = 2
THREADS = 8


class Writer:
    """A process that records, and what it was told is durable."""

    def __init__(self, url: str, home: Path, calls: int) -> None:
        self.acknowledged: list[str] = []
        self.ready = threading.Event()
        self._home = home
        self._told, theirs = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=writing.main, args=(url, str(home), THREADS, calls, theirs))
        self._process.start()
        theirs.close()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with os.fdopen(os.dup(self._told.fileno()), encoding="ascii") as lines:
            for line in lines:
                if line == "ready\n":
                    self.ready.set()
                else:
                    self.acknowledged.append(line.strip())
        self.ready.set()

    def send(self, sent: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, sent)

    def wait(self) -> str:
        """Wait until it ends, and return what it complained about, and how it ended if that was not by itself."""
        self._process.join(timeout=240)
        hangs = self._process.is_alive()
        if hangs:
            self.send(writing.TELLS_WHERE_IT_IS)
            self._process.join(timeout=5)
            self.send(signal.SIGKILL)
            self._process.join()
        self._reader.join()
        self._told.close()
        complaints = self._home / f"{self._process.pid}.complaints"
        said = complaints.read_text(encoding="utf-8") if complaints.exists() else "it never began"
        if hangs or self._process.exitcode:
            said += f"\n{'hung, and ' if hangs else ''}ended with {self._process.exitcode}"
        return said


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return the URL of a founded ledger and the home of its keys."""
    if request.param == "postgres":
        url, home = request.getfixturevalue("postgres_url"), tmp_path / ".batonpass"
    else:
        home = tmp_path / ".batonpass"
        url = f"sqlite:///{home / 'ledger.db'}"
    with Relay.open(url, home=home) as relay:
        assert recording_of(relay) is not None
    return url, home


class Reader:
    """Verifies again and again while others write."""

    def __init__(self) -> None:
        self.seen: list[int] = []  # how many receipts, by each verification
        self.complaints = ""


@contextmanager
def a_reader(url: str) -> Iterator[Reader]:
    """Verify before others write, while they do, and once more when they have; give what each verification saw.

    What goes wrong is kept, not raised: the writers may have the reason, and are asked in the same assertion.
    """
    reader = Reader()
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.wait(0.2):
                reader.seen.append(_verified(url))
            reader.seen.append(_verified(url))
        except BaseException:  # noqa: BLE001 - shown by the test's assertion
            reader.complaints = traceback.format_exc()

    # However slow the machine is, one verification comes before the first writer and one after the last.
    reader.seen.append(_verified(url))
    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield reader
    finally:
        stop.set()
        thread.join()


def _verified(url: str) -> int:
    store = open_store(url)
    try:
        store.sequence()
        return verify_ledger(store).receipts
    finally:
        store.close()


def _calls(url: str) -> list[str]:
    store = open_store(url)
    with store.view() as view:
        found = [
            json.loads(receipt.payload)["predicate"]["body"]["call"]
            for receipt in view.find_receipts(ReceiptQuery(kind="tool.requested"))
        ]
    store.close()
    return found


@pytest.mark.slow
def test_two_processes_with_eight_threads_lose_and_double_nothing(place: tuple[str, Path]) -> None:
    """Eight thousand receipts from two processes, while a reader verifies: all there, once, in whole chains."""
    url, home = place
    calls = RECEIPTS // (PROCESSES * THREADS)
    with a_reader(url) as reader:
        writers = [Writer(url, home, calls) for _ in range(PROCESSES)]
        complaints = [writer.wait() for writer in writers]

    assert ["", "", ""] == [*complaints, reader.complaints]
    acknowledged = [call for writer in writers for call in writer.acknowledged]
    assert RECEIPTS == len(acknowledged)
    assert sorted(acknowledged) == sorted(_calls(url))
    assert sorted(reader.seen) == reader.seen
    assert (1, 1 + RECEIPTS + 2 * PROCESSES * THREADS) == (reader.seen[0], reader.seen[-1])


@pytest.mark.slow
def test_killed_processes_leave_everything_that_was_acknowledged(place: tuple[str, Path]) -> None:
    """Processes killed at random moments: what they were told is durable is there, and the ledger is whole."""
    url, home = place
    chance = random.Random(7)
    acknowledged: list[str] = []
    rounds = 0
    # However slow the machine is: at least six times, and until enough was acknowledged to lose some of it.
    while rounds < 6 or len(acknowledged) <= 100:
        rounds += 1
        writers = [Writer(url, home, 10_000) for _ in range(PROCESSES)]
        for writer in writers:
            writer.ready.wait(timeout=60)
        time.sleep(chance.uniform(0.05, 0.8))
        for writer in writers:
            writer.send(signal.SIGKILL)
        for writer in writers:
            writer.wait()
            acknowledged += writer.acknowledged
    found = _calls(url)

    assert set() == set(acknowledged) - set(found)
    assert len(found) == len(set(found))
    assert len(acknowledged) > 100
    assert len(found) < _verified(url)


@pytest.mark.slow
def test_a_frozen_process_is_woken_and_nothing_is_lost(place: tuple[str, Path]) -> None:
    """One of two writers is stopped in the middle, again and again, and goes on: nothing lost, nothing doubled."""
    url, home = place
    chance = random.Random(11)
    writers = [Writer(url, home, 250) for _ in range(PROCESSES)]
    for writer in writers:
        writer.ready.wait(timeout=60)
    for _ in range(12):
        frozen = chance.choice(writers)
        frozen.send(signal.SIGSTOP)
        time.sleep(chance.uniform(0.02, 0.15))
        frozen.send(signal.SIGCONT)
        time.sleep(chance.uniform(0.0, 0.05))
    complaints = [writer.wait() for writer in writers]

    assert ["", ""] == complaints
    acknowledged = [call for writer in writers for call in writer.acknowledged]
    assert PROCESSES * THREADS * 250 == len(acknowledged)
    assert sorted(acknowledged) == sorted(_calls(url))
    assert 1 + len(acknowledged) + 2 * PROCESSES * THREADS == _verified(url)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restarted", "torn down and recovered"])
def test_a_database_that_restarts_under_two_processes_loses_nothing(
    postgres: Server,
    postgres_url: str,
    tmp_path: Path,
    how: signal.Signals,
) -> None:
    """PostgreSQL goes away twice while two processes write: they wait, go on, and nothing is lost or doubled."""
    home = tmp_path / ".batonpass"
    with Relay.open(postgres_url, home=home) as relay:
        assert recording_of(relay) is not None
    writers = [Writer(postgres_url, home, 150) for _ in range(PROCESSES)]
    for writer in writers:
        writer.ready.wait(timeout=60)
    for _ in range(2):
        time.sleep(0.3)
        postgres.stop(how=how)
        postgres.start()
    complaints = [writer.wait() for writer in writers]

    assert ["", ""] == complaints
    acknowledged = [call for writer in writers for call in writer.acknowledged]
    assert PROCESSES * THREADS * 150 == len(acknowledged)
    assert sorted(acknowledged) == sorted(_calls(postgres_url))
    assert 1 + len(acknowledged) + 2 * PROCESSES * THREADS == _verified(postgres_url)
