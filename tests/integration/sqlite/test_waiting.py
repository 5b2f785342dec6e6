"""Processes that stop, die or fork: the others wait no longer than they must, and what was acknowledged is there."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.clock import SystemClock
from batonpass.errors import ForkedError, StoreBusyError
from batonpass.signing.keyring import Keyring
from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.turnstile import Turnstile
from batonpass.testing.builders import Scribe, a_scribe

# Records, says so, and then does to itself, inside a commit, what the test asks for; then goes on.
OTHER = """\
import os, sys
from pathlib import Path
from batonpass.relay import Relay, recording_of
relay = Relay.open(f"sqlite:///{sys.argv[1]}", home=Path(sys.argv[2]))
for number in range(3):
    recording_of(relay).start("acknowledged", agent="other", by="user:ana")
    print("acknowledged", flush=True)
def strike(connection):
    connection.execute("UPDATE runs SET state = 'failed'")
    os.kill(os.getpid(), int(sys.argv[3]))
    connection.execute("UPDATE runs SET state = 'open'")
print("striking", flush=True)
relay.store._write(strike)
print("woken", flush=True)
recording_of(relay).start("again", agent="other", by="user:ana")
print("again", flush=True)
"""


class Other:
    """Another process that writes the same ledger."""

    def __init__(self, path: Path, home: Path, strike: signal.Signals) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path), str(home), str(int(strike))],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def hear(self) -> str:
        """Return the next line that it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def is_stopped(self) -> bool:
        """Return whether it is stopped, as the kernel sees it."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def end(self) -> None:
        """End it, however it is, and wait for it."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".batonpass"


@pytest.fixture
def path(home: Path) -> Path:
    return home / "ledger.db"


@pytest.fixture
def other_stopped(path: Path, home: Path) -> Iterator[Other]:
    """Give a process that is stopped inside a commit, after three that it acknowledged."""
    other = Other(path, home, signal.SIGSTOP)
    assert ["acknowledged"] * 3 + ["striking"] == [other.hear() for _ in range(4)]
    until(other.is_stopped)
    yield other
    other.end()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process is about to do."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def a_scribe_of(home: Path, store: SqliteStore) -> Scribe:
    """Return what records with the keys of a home."""
    keyring = Keyring(home, SystemClock())
    return a_scribe(store, identity=keyring.relay(), root=keyring.make_root())


@pytest.mark.slow
def test_a_frozen_process_is_named_and_harms_nobody_once_it_wakes(path: Path, home: Path, other_stopped: Other) -> None:
    """A process frozen inside a commit: we are told which, in time; it wakes, and both go on, whoever comes first."""
    store = SqliteStore(path, wait_for=0.3)
    scribe = a_scribe_of(home, store)
    before = time.monotonic()
    with pytest.raises(StoreBusyError, match=f"process {other_stopped.pid} ") as refused:
        scribe.start()
    waited = time.monotonic() - before

    assert 1 == len(str(refused.value).splitlines())
    assert 0.25 < waited < 5
    assert 4 == verify_ledger(store).receipts
    os.kill(other_stopped.pid, signal.SIGCONT)
    # It writes again while we want nothing: a place in line that was given up is not kept from others.
    assert ["woken", "again"] == [other_stopped.hear(), other_stopped.hear()]
    scribe.start()
    assert 6 == verify_ledger(store).receipts
    store.close()


@pytest.mark.slow
def test_a_process_that_dies_inside_a_commit_leaves_the_lock_free(path: Path, home: Path) -> None:
    """Killed in the middle of a transaction: what it had acknowledged is there, the half is not, and nobody waits."""
    other = Other(path, home, signal.SIGKILL)
    heard = [other.hear() for _ in range(4)]
    other.end()
    store = SqliteStore(path, wait_for=5.0)
    scribe = a_scribe_of(home, store)
    before = time.monotonic()
    scribe.start()
    waited = time.monotonic() - before

    assert ["acknowledged"] * 3 + ["striking"] == heard
    assert waited < 2
    assert 5 == verify_ledger(store).receipts
    store.close()


@pytest.mark.slow
def test_a_frozen_process_that_is_killed_leaves_the_lock_free(path: Path, home: Path, other_stopped: Other) -> None:
    """Whoever does not wake up can be killed, as the error suggests; then the ledger is free and whole."""
    store = SqliteStore(path, wait_for=0.2)
    scribe = a_scribe_of(home, store)
    with pytest.raises(StoreBusyError):
        scribe.start()
    other_stopped.end()
    scribe.start()

    assert 5 == verify_ledger(store).receipts
    store.close()


@pytest.mark.slow
def test_readers_do_not_wait_for_a_frozen_writer(path: Path, home: Path, other_stopped: Other) -> None:
    """Whoever only reads opens the ledger, sees what was acknowledged, and waits for nobody."""
    store = SqliteStore(path, wait_for=0.0)
    with store.view() as view:
        states = {run.state.value for run in view.find_runs()}

    assert ({"open"}, 4) == (states, verify_ledger(store).receipts)
    assert other_stopped.is_stopped()
    assert home.exists()
    store.close()


TAKE_THE_FILE = """\
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
        print("taken")
    except OSError:
        print("refused")
"""


def test_an_open_ledger_is_locked_against_programs_that_want_it_alone(path: Path) -> None:
    """While we have a ledger open, SQLite's shared lock is on it: nobody can take the file, or its log, for itself."""
    founding = SqliteStore(path)
    scribe = a_scribe(founding)
    founding.close()
    store = SqliteStore(path)
    a_scribe(store, identity=scribe.identity, root=scribe.root).start()
    taken = subprocess.run([sys.executable, "-c", TAKE_THE_FILE, str(path)], capture_output=True, text=True, check=True)
    store.close()

    assert "refused" == taken.stdout.strip()


def in_a_fork(act: Callable[[], object]) -> object:
    """Do something in a forked child and return what it returned, or the name of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                answer: object = act()
            except BaseException as error:  # noqa: BLE001 - compared by the test
                answer = f"{type(error).__name__}: {error}"
            os.write(writing, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else "nothing"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


def test_a_forked_child_must_open_its_own(store: SqliteStore) -> None:
    """The parent's ledger refuses in a child to read and to write; the parent goes on."""
    scribe = a_scribe(store)
    lead = scribe.start()

    assert f"ForkedError: {ForkedError()}" == in_a_fork(lambda: scribe.call(lead))
    assert f"ForkedError: {ForkedError()}" == in_a_fork(lambda: verify_ledger(store).receipts)
    scribe.call(lead)
    assert 4 == verify_ledger(store).receipts


def test_a_forked_child_that_closes_what_it_got_harms_nobody(store: SqliteStore) -> None:
    """A child that tidies up closes nothing of its parent's."""
    scribe = a_scribe(store)
    lead = scribe.start()

    assert in_a_fork(store.close) in {None, f"ForkedError: {ForkedError()}"}
    scribe.call(lead)
    assert 4 == verify_ledger(store).receipts


def test_a_forked_child_may_open_the_same_ledger(store: SqliteStore, path: Path) -> None:
    """A child that opens the ledger anew reads and writes beside its parent."""
    scribe = a_scribe(store)
    scribe.start()

    def record() -> int:
        own = SqliteStore(path)
        a_scribe(own, identity=scribe.identity, root=scribe.root).start()
        return verify_ledger(own).receipts

    assert 3 == in_a_fork(record)
    scribe.start()
    assert 4 == verify_ledger(store).receipts


def test_a_child_of_a_parent_that_closed_its_ledger_keeps_its_own_files(path: Path) -> None:
    """The lock files of a closed ledger are forgotten once: what was opened since, with their numbers, stays open."""
    store = SqliteStore(path)
    a_scribe(store).start()
    store.close()

    # The pipe through which the child answers has the numbers that the lock files had.
    assert "heard" == in_a_fork(lambda: "heard")
    assert store.url.endswith("ledger.db")


def test_a_forked_child_does_not_keep_the_right_to_write(tmp_path: Path) -> None:
    """A parent that is killed while it writes sets the lock free, though a child that it forked lives on."""
    ready, waiting = tmp_path / "ready", tmp_path / "waiting"
    os.mkfifo(waiting)
    parent = os.fork()
    if parent == 0:
        try:
            turnstile = Turnstile(tmp_path)
            turnstile.enter(time.monotonic() + 5)
            if os.fork() == 0:
                waiting.open("rb").read()
                os._exit(0)
            ready.touch()
            signal.pause()
        finally:
            os._exit(1)
    until(ready.exists)
    with waiting.open("wb"):  # opens when the grandchild is there to read
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        with (tmp_path / "writer.lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert str(parent) == lock.read().decode().strip()
