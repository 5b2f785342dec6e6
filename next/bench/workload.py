"""What is measured: the acts of a run at work, on a ledger of their own, with a baton of 3 KB that is written anew."""

import os
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import apsw

from batonpass import Brief, Constraint, Decision, Relay, Run, tool
from batonpass.signing.keys import KeyPair

Act = Callable[[], object]

SENTENCE: Final = (
    "Sum the stored lines exactly, round half-even once at the end, and keep what was already paid as it is. "
)
TASK: Final = SENTENCE * 18
CRITERIA: Final = ("every invoice differs by one cent at most", "all tests below tests/billing pass")
GRANT: Final = ("write:src/billing/**",)
TEXT: Final = "return round_half_even(total)\n" * 6
PRINCIPAL: Final = "user:ana"
_NUMBERS: Final = count(1)


def next_task() -> str:
    """Return a task that nobody was given before."""
    return f"{TASK} This is batch {os.getpid()}-{next(_NUMBERS)}."


def baton_of_peer() -> dict[str, Any]:
    """Return the same words as one value, for engines that carry a state."""
    return {
        "intent": SENTENCE,
        "task": next_task(),
        "rationale": SENTENCE * 2,
        "criteria": list(CRITERIA),
        "constraints": [SENTENCE * 2, SENTENCE * 2],
        "decisions": [{"what": "ROUND_HALF_EVEN on the sum", "why": SENTENCE * 3}],
    }


def hands_off(lead: Run, *, calling: bool = False, granted: bool = False, accept: bool = False) -> Act:
    """Return the act that matters: offer, accept, close, with everything in the baton written anew."""
    brief = Brief(rationale=SENTENCE * 2)
    items = (
        Constraint(SENTENCE * 2),
        Constraint(SENTENCE * 2),
        Decision("ROUND_HALF_EVEN on the sum", why=SENTENCE * 3),
    )
    may = GRANT if granted else None

    def hand_off() -> None:
        offer = lead.hand_off(
            "editor", next_task(), criteria=CRITERIA, brief=brief, items=items, may=may, accept=accept
        )
        with offer as editor:
            if calling:
                editor.call(_write_file, "src/billing/totals.py", TEXT)

    return hand_off


def calls(run: Run) -> Act:
    """Return a call through the guard: request, outcome. Two commits."""
    return lambda: run.call(_write_file, f"src/billing/totals{next(_NUMBERS)}.py", TEXT)


def third_hop(relay: Relay) -> Run:
    """Return the third of three runs that hold a grant."""
    lead = relay.start(SENTENCE, by=PRINCIPAL, may_delegate=GRANT)
    editor = lead.hand_off("editor", next_task(), may=GRANT, may_delegate=GRANT).accept()
    return editor.hand_off("helper", next_task(), may=GRANT).accept()


@tool(action="write", target="path")
def _write_file(path: str, text: str) -> str:
    # The file is looked at before and after, as with any tool that writes; that it writes nothing keeps the disk of
    # the bench to what the ledger costs.
    del path, text
    return "wrote 6 lines"


def bare_appends(path: str, size: int) -> Act:
    """Return an append to a file that only grows, with the sync that makes it durable."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    data = os.urandom(size)

    def append() -> None:
        os.write(file, data)
        os.fsync(file)

    return append


def bare_commits(path: str, size: int) -> Act:
    """Return three inserts of so many bytes into one table, each durable: SQLite's own share of a handoff."""
    connection, data = apsw.Connection(path), os.urandom(size)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 2_000)
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body BLOB)")

    def insert() -> None:
        for _ in range(3):
            connection.execute("INSERT INTO bare (body) VALUES (?)", (data,))

    for _ in range(700):  # until the log is written over again, which is the rule
        insert()
    return insert


def bare_signatures(size: int) -> Act:
    """Return the signing of a handoff and nothing else: the relay three times, the run once, one new key."""
    data, seed = os.urandom(size // 2), os.urandom(32)
    key = KeyPair(seed)
    return lambda: (KeyPair(seed), [key.sign(data) for _ in range(4)])
