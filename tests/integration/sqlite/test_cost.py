"""What looking costs: as much as it prints, however much the ledger holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId
from batonpass.model.bodies.body import Outcome
from batonpass.relay import Relay, recording_of
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.plain_acts import PlainRecording, plainly
from tests.integration.sqlite.tails import settle
from tests.unit.cli.desk import ANA, Desk, record_tree

_STEPS: Final = "SQLITE_STMTSTATUS_VM_STEP"
# A few more rows may share the last four characters of an id; each costs about ten steps.
_SLACK: Final = 60
# How much of what its sender had arrived at a handoff is one figure, and what the sender's other children had delivered
# before counts. So of each of them the row, the last receipt and the place of its report are looked up, and no more.
_SIBLING: Final = 150
_WITH_SIBLINGS: Final = frozenset({"handoff show last", "handoff show {handoff_end}"})

COMMANDS: Final = (
    "run list --limit 5",
    "run list --agent editor --limit 5",
    "run list --agent nobody",
    "run list --state failed",
    "run list --state open",
    "run list --before {run} --limit 3",
    "run show {run}",
    "run show {run_end}",
    "handoff list --limit 5",
    "handoff list --state failed",
    "handoff list --state claimed",
    "handoff list --open",
    "handoff list --before {handoff} --limit 3",
    "handoff show {handoff_end}",
    "handoff show last",
    "session list --limit 5",
    "session show last",
    "trail last",
    "trail {handoff_end}",
    "why last",
    "why {call}",
    "why {call_end}",
    "why {handoff_end}",
    "receipt show last",
    "receipt show {receipt_end}",
)


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Count the steps of SQLite's own machine, for each statement of every connection that is opened meanwhile."""
    steps: list[int] = []

    def take(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"][_STEPS])

    def follow(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, take)

    apsw.connection_hooks.append(follow)
    try:
        yield steps
    finally:
        apsw.connection_hooks.remove(follow)


def settled(relay: Relay) -> None:
    """Leave nothing in the tail of a ledger: how much there is by chance is not what is measured."""
    assert isinstance(relay.store, SqliteStore)
    settle(relay.store)


def names_of(desk: Desk) -> dict[str, str]:
    """Return what the latest tree's parts are called."""
    run = desk.answer("run", "show", "last")
    request = desk.answer("why", run["calls"][0]["id"])
    handoff = desk.answer("handoff", "list", "--limit", "1")[0]["id"]
    names = {"run": run["id"], "handoff": handoff, "call": run["calls"][0]["id"], "receipt": request["receipt"]}
    return names | {f"{name}_end": known[-6:] for name, known in names.items()}


def steps_of(desk: Desk, names: dict[str, str]) -> dict[str, int]:
    """Return how many steps each command takes."""
    found = {}
    for command in COMMANDS:
        with counted_steps() as steps:
            desk.words(*command.format(**names).split())
        found[command] = sum(steps)
    return found


def wide(recording: PlainRecording, children: int) -> Working:
    """Record a lead that hands off many times, and the last child of which calls two tools."""
    lead = recording.start("Do it all", agent=AgentId("lead"), by=ANA)
    for number in range(children):
        child = recording.accept(recording.offer(lead, AgentId("editor"), f"Part {number}"))
        if number == children - 1:
            recording.finish(child, recording.request(child, "write_file", "{}"), "ok")
        recording.close(child, Outcome.COMPLETED, report="done")
    return lead


@pytest.mark.slow
def test_what_is_asked_for_is_found_without_the_rest(tmp_path: Path) -> None:
    """In a ledger of many trees, each command takes the steps that it takes in one of a few."""
    desk = Desk(tmp_path)
    with desk.relay() as relay:
        for _ in range(6):
            record_tree(recording_of(relay))
        settled(relay)
        few = steps_of(desk, names_of(desk))
        for _ in range(60):
            record_tree(recording_of(relay))
        settled(relay)
        many = steps_of(desk, names_of(desk))

    assert {} == {command: (few[command], many[command]) for command in few if many[command] > few[command] + _SLACK}


@pytest.mark.slow
def test_one_of_many_children_is_found_without_the_others(tmp_path: Path) -> None:
    """A run with a hundred handoffs is no more to look at, beside one of them, than a run with six.

    Only the figure for fidelity counts what the others had delivered, and takes little for each.
    """
    spent = {}
    for children in (6, 100):
        desk = Desk(tmp_path / str(children))
        with desk.relay() as relay:
            wide(plainly(recording_of(relay)), children)
            settled(relay)
        spent[children] = steps_of(desk, names_of(desk))
    few, many = spent[6], spent[100]
    # These show the whole tree, or what the session has done so far.
    whole = {"trail last", "session show last", "trail {handoff_end}"}
    allowed = {command: _SLACK + (_SIBLING * (100 - 6) if command in _WITH_SIBLINGS else 0) for command in few}

    assert {} == {
        command: (few[command], many[command])
        for command in few
        if command not in whole and many[command] > few[command] + allowed[command]
    }
