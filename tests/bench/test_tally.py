"""Counts of one process: calls of all its threads, statements, steps and pages of SQLite."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import apsw

from bench.tally import Counts, Tally

ROOT = Path(__file__).resolve().parents[2]


def add(left: int, right: int) -> int:
    return left + right


def call(times: int) -> None:
    for number in range(times):
        add(number, number)


def counted(times: int) -> Counts:
    with Tally() as tally:
        call(1)
        before = tally.read()
        call(times)
        return tally.read().since(before)


def test_each_call_of_a_function_is_one() -> None:
    """Ten more calls of a function are ten more, and what the tally does itself is always the same."""
    assert 10 == counted(20).calls - counted(10).calls


def test_calls_of_threads_are_counted() -> None:
    """A thread that starts while a tally stands is counted, each with a number of its own."""
    totals = []
    for times in (100, 600):
        with Tally() as tally:
            threads = [threading.Thread(target=call, args=(times,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            totals.append(tally.read().calls)

    assert 4 * 500 <= totals[1] - totals[0] < 4 * 510


def test_statements_steps_and_pages_are_counted(tmp_path: Path) -> None:
    """Every statement counts, of every connection that is opened; a commit writes the pages that it changed."""
    with Tally() as tally:
        connection = apsw.Connection(str(tmp_path / "a.db"))
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE said (number INTEGER PRIMARY KEY, body BLOB)")
        before = tally.read()
        connection.execute("BEGIN")
        connection.execute("INSERT INTO said (body) VALUES (zeroblob(9000))")
        connection.execute("COMMIT")
        connection.execute("SELECT number FROM said").fetchall()
        found = tally.read().since(before)

    assert (4, True) == (found.statements, found.steps > 4)
    assert 3 <= found.pages <= 4  # the table's, two that its long row flows over into, and perhaps the first


def test_what_a_closed_connection_wrote_is_not_forgotten(tmp_path: Path) -> None:
    """A program that closes its ledger before it ends has written nevertheless."""
    with Tally() as tally:
        connection = apsw.Connection(str(tmp_path / "a.db"))
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE said (body BLOB)")
        written = tally.read().pages
        connection.close()

    assert written == tally.read().pages > 0


def test_what_looks_at_statements_is_no_call_of_the_program(tmp_path: Path) -> None:
    """The tally's own function, which SQLite calls for each statement, is not counted."""
    calls = []
    for times in (1, 51):
        with Tally() as tally:
            connection = apsw.Connection(str(tmp_path / f"{times}.db"))
            for _ in range(times):
                connection.execute("SELECT 1").fetchall()
            calls.append(tally.read().calls)

    assert calls[0] == calls[1]


def test_afterwards_nothing_is_counted(tmp_path: Path) -> None:
    """A tally that has ended leaves no hook behind: what is timed next is not slowed down."""
    with Tally() as tally:
        pass
    before = tally.read()
    call(5)
    apsw.Connection(str(tmp_path / "a.db")).execute("SELECT 1").fetchall()

    assert (before, None, []) == (tally.read(), sys.getprofile(), apsw.connection_hooks)


def test_a_program_is_counted_even_if_it_exits(tmp_path: Path) -> None:
    """A command ends with `sys.exit`, and its counts are reported all the same."""
    report = tmp_path / "report"
    program = "import sys\ndef add(): return int(sys.argv[1])\nfor _ in range(7): add()\nsys.exit(3)"
    command = [sys.executable, str(ROOT / "bench" / "counted.py"), str(report), "nosql", program, "4"]

    ended = subprocess.run(command, check=False)

    assert 3 == ended.returncode
    assert 7 <= json.loads(report.read_text(encoding="utf-8"))["calls"] < 20
