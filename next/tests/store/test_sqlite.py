"""What is special about the ledger in one SQLite file: turns between processes, interrupts, files that are none."""

import fcntl
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType

import pytest

from batonpass.errors import BatonpassError, StoreError
from batonpass.testing.ledgers import Ledger, a_ledger

_MODULES = ("batonpass.store.group_commit", "batonpass.store.sqlite.store", "batonpass.store.sqlite.turn")
_PROBE = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
for line in sys.stdin:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 2, 0)
    except OSError:
        print("held", flush=True)
    else:
        fcntl.lockf(file, fcntl.LOCK_UN, 2, 0)
        print("free", flush=True)
"""
_TAKER = """
import sys, time
from pathlib import Path
from batonpass.store.sqlite.turn import FairLock

lock, shared, name = FairLock(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
size = 0
while size < 500:
    with lock, shared.open("ab") as file:
        file.write(name.encode())
        size = file.tell()
        time.sleep(0.001)  # as long as a disk takes
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    ledger = a_ledger(f"sqlite:///{path}")
    with closing(ledger.store):
        yield ledger.found()


def interrupted(act: Callable[[], object], at: int) -> bool:
    """Do something, and raise `KeyboardInterrupt` at a point of the store; return whether it has that many."""
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        # An interrupt in a generator that is thrown away is only printed.
        if event == "c_call" or frame.f_code.co_name == "<genexpr>" or frame.f_globals.get("__name__") not in _MODULES:
            return
        count += 1
        if count == at:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        with suppress(KeyboardInterrupt, BatonpassError):
            act()
    finally:
        sys.setprofile(None)
    return count >= at


@pytest.mark.slow
@pytest.mark.parity("sim-no-transaction-stays-open", "interrupt-leaks-no-lock", "append-is-all-or-none")
@pytest.mark.parametrize("is_refused", [False, True], ids=["an append", "an append that is refused"])
def test_interrupt_at_any_point_of_an_append(ledger: Ledger, path: Path, *, is_refused: bool) -> None:
    """No transaction stays open and no turn is kept: others write at once; the entry is there, or it is not."""
    other = sqlite3.connect(path, timeout=0)
    command = [sys.executable, "-c", _PROBE, str(path.with_suffix(".lock"))]
    with (
        closing(other),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe,
    ):
        assert probe.stdin is not None
        assert probe.stdout is not None
        point, is_reached, written = 0, True, 0
        while is_reached:
            point += 1
            run = ledger.a_run()
            entry = [ledger.sign("run.recorded", run)]
            entry.append(ledger.sign("run.recorded", run, after=entry[0]))
            if is_refused:
                entry.append(ledger.sign("run.recorded", run, seq=9))

            is_reached = interrupted(lambda entry=entry: ledger.store.append(entry), point)  # type: ignore[misc]

            print("?", file=probe.stdin, flush=True)
            assert "free\n" == probe.stdout.readline(), f"the turn is kept, after an interrupt at point {point}"
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
            found = [signed.digest for signed in ledger.store.receipts(run, after=1)]
            assert found in ([], [signed.digest for signed in entry])
            assert not (found and is_refused)
            if found:
                ledger.note(*entry)
                written += 1
        assert point > 40
        assert is_refused or 0 < written < point
        assert ledger.expected_rows() == ledger.rows()  # also of what was interrupted nothing came later
        probe.stdin.close()


@pytest.mark.slow
@pytest.mark.parity("writers-are-served-fairly")
def test_turns_are_given_in_the_order_of_asking(tmp_path: Path) -> None:
    """Of processes that ask again as soon as they have had their turn, each has its share."""
    lock, shared = tmp_path / "turn.lock", tmp_path / "turns"
    with lock.open("wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 2, 0)
        takers = [
            subprocess.Popen([sys.executable, "-c", _TAKER, lock, shared, name], stdout=subprocess.PIPE, text=True)
            for name in "abcd"
        ]
        for taker in takers:
            assert taker.stdout is not None
            assert "ready\n" == taker.stdout.readline()
    for taker in takers:
        with taker:
            pass

    turns = Counter(shared.read_text()[100:-50])

    assert 4 == len(turns)
    assert min(turns.values()) > 0.5 * turns.total() / len(turns)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("CREATE TABLE mine (a)", id="another database"),
        pytest.param("PRAGMA user_version = 7", id="a version of its own"),
    ],
)
def test_another_file_is_no_ledger(path: Path, damage: str) -> None:
    """It is refused, and left as it is."""
    with closing(sqlite3.connect(path)) as other:
        other.execute(damage)
        other.commit()

    with pytest.raises(StoreError) as refused:
        a_ledger(f"sqlite:///{path}")

    assert "store.not_a_ledger" == refused.value.code


def test_text_is_no_ledger(path: Path) -> None:
    """A file that is no database is refused."""
    path.write_text("a diary\n" * 200)

    with pytest.raises(StoreError) as refused:
        a_ledger(f"sqlite:///{path}")

    assert "store.not_a_ledger" == refused.value.code
