"""The right to write, among processes: one at a time, each in turn, and never lost."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.errors import StoreBusyError, StoreFullError, StoreReadOnlyError
from batonpass.store.sqlite.turnstile import Turnstile
from tests.integration.sqlite.commits import SOON, until
from tests.integration.sqlite.places import a_small_disk, filled


@pytest.fixture
def three(tmp_path: Path) -> Iterator[tuple[Turnstile, Turnstile, Turnstile]]:
    """Give three turnstiles at one place, as three processes have them."""
    turnstiles = Turnstile(tmp_path), Turnstile(tmp_path), Turnstile(tmp_path)
    yield turnstiles
    for turnstile in turnstiles:
        turnstile.close()


def is_taken(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def soon() -> float:
    return time.monotonic() + SOON


def test_whoever_writes_leaves_their_number(tmp_path: Path, three: tuple[Turnstile, ...]) -> None:
    """The lock file names the process, for whoever waits or wonders."""
    three[0].enter(soon())

    assert str(os.getpid()) == (tmp_path / "writer.lock").read_text().strip()
    assert 0o600 == (tmp_path / "writer.lock").stat().st_mode & 0o777


def test_one_at_a_time(three: tuple[Turnstile, ...]) -> None:
    """Who comes second waits until the first has left, and then has it."""
    first, second, _ = three
    first.enter(soon())
    entered = threading.Event()

    def wait() -> None:
        second.enter(soon())
        entered.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert not entered.wait(0.05)
    first.leave()
    assert entered.wait(SOON)
    waiting.join(SOON)
    with pytest.raises(StoreBusyError):
        first.enter(time.monotonic() + 0.05)


def test_whoever_just_wrote_stands_behind_who_waits(tmp_path: Path, three: tuple[Turnstile, ...]) -> None:
    """A process that writes again and again lets the next in line go first, every time."""
    greedy, patient, _ = three
    order: list[str] = []

    def wait() -> None:
        for _ in range(20):
            patient.enter(soon())
            order.append("patient")
            patient.leave()

    greedy.enter(soon())
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    while True:
        until(lambda: (patient._waiting and is_taken(tmp_path / "turn.lock")) or not waiting.is_alive())
        if not waiting.is_alive():
            break
        # The other stands in line before we let go: it must come before we come again.
        order.append("greedy")
        greedy.leave()
        greedy.enter(soon())
    greedy.leave()

    assert 20 == order.count("patient")
    assert "greedy greedy" not in " ".join(order)


def test_a_place_that_was_given_up_is_not_kept(three: tuple[Turnstile, ...]) -> None:
    """Who waited too long and left the line does not get in the way of the others when the turn comes."""
    first, impatient, third = three
    first.enter(soon())
    with pytest.raises(StoreBusyError):
        impatient.enter(time.monotonic() + 0.05)
    first.leave()
    third.enter(soon())
    third.leave()
    impatient.enter(soon())
    impatient.leave()
    first.enter(soon())


def test_who_gave_up_may_come_again(three: tuple[Turnstile, ...]) -> None:
    """Coming back while the other still writes is standing in line again, once."""
    first, second, _ = three
    first.enter(soon())
    for _ in range(3):
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()} "):
            second.enter(time.monotonic() + 0.02)
    before = threading.active_count()
    threading.Thread(target=first.leave).start()
    second.enter(soon())
    second.leave()

    assert before <= threading.active_count() + 1
    first.enter(soon())


def test_a_holder_that_left_no_name_is_unknown(tmp_path: Path, three: tuple[Turnstile, ...]) -> None:
    """If the file says nothing, the error says that it is unknown who writes."""
    first, second, _ = three
    first.enter(soon())
    (tmp_path / "writer.lock").write_text("")

    with pytest.raises(StoreBusyError, match="process unknown has been writing"):
        second.enter(time.monotonic())


def test_who_stands_in_line_when_the_store_is_closed_harms_nobody(tmp_path: Path) -> None:
    """A number that was given back may be another file by the time the lock comes: that file is not touched."""
    first, impatient = Turnstile(tmp_path), Turnstile(tmp_path)
    first.enter(soon())
    with pytest.raises(StoreBusyError):
        impatient.enter(time.monotonic() + 0.05)
    impatient.close()
    other = [(tmp_path / name).open("wb") for name in ("one", "two")]
    first.leave()
    until(lambda: not any(thread.name == "batonpass-turnstile" for thread in threading.enumerate()))

    assert [False, False] == [is_taken(tmp_path / name) for name in ("one", "two")]
    first.enter(soon())
    first.close()
    for file in other:
        file.close()


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    """A turnstile that is closed again closes nothing that was opened since under the numbers of its files."""
    turnstile = Turnstile(tmp_path)
    turnstile.close()
    with (tmp_path / "one").open("w") as one, (tmp_path / "two").open("w") as two:
        turnstile.close()
        one.write("still open")
        two.write("still open")

    assert "still open" == (tmp_path / "one").read_text() == (tmp_path / "two").read_text()


def test_a_place_without_files_is_for_reading_only(tmp_path: Path) -> None:
    """Where no lock can be made nobody can write, and the error says so."""
    (tmp_path / "home").write_text("not a directory")

    with pytest.raises(StoreReadOnlyError, match=r"turn.lock: Not a directory; the ledger can be read only"):
        Turnstile(tmp_path / "home")


def test_a_full_disk_is_said_to_be_full() -> None:
    """Without room for the number of the process nobody writes; the error says why, and the right is not kept."""
    with a_small_disk(kilobytes=256) as disk:
        first, second = Turnstile(disk), Turnstile(disk)
        with filled(disk), pytest.raises(StoreFullError):
            first.enter(soon())
        second.enter(time.monotonic() + 1)
        second.leave()
        first.close()
        second.close()
