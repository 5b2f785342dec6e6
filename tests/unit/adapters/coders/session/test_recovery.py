"""Whoever records may be ended at any time: the next one knows from the ledger all that it needs."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.adapters.coders.sessions import SESSION, Session, lines, receipts, told

EVENTS = 33


class ForwardClock(FrozenClock):
    """A clock that goes on whenever somebody looks, and never back as that of a machine may."""

    def now(self) -> datetime:
        """Return a later time than before: what is compared here stands in the order of its ids, and these of time."""
        return self.tick(timedelta(milliseconds=1))


@pytest.fixture
def relay(project: Path) -> Iterator[Relay]:
    """Return a relay whose ledger is whole after every test."""
    with Relay.open("memory:", work_tree=project, clock=ForwardClock()) as relay:
        yield relay
        relay.verify()


def play(session: Session) -> None:
    """Play a session with all kinds of events; files are written by hand where calls would have."""
    session.tell("SessionStart", source="startup")
    session.says("Fix it")
    session.says("Quickly")
    session.calls("c1", "Read", {"file": "one"}, file_path="a.py")
    session.calls("c2", "Bash", {"stdout": "x"}, command="make")
    session.calls("c3", "Bash", {"stdout": "x"}, command="make")
    session.asks("c4", "Bash", command="false")
    session.fails("c4", "Bash", "Exit code 1", command="false")
    session.delegates("c5", "One")
    session.delegates("c6", "Two")
    session.starts("a1", "c5")
    session.starts("a2", "c6")
    session.calls("c7", "Read", "x", "a2", file_path="a.py")
    session.calls("c8", "Read", "x", "a1", file_path="a.py")
    session.delegates("c9", "Deeper", agent="a1")
    session.starts("a3", "c9", parent="a1")
    session.stops("a3", "The page says so.")
    session.delegated("c9", "a3", "The page says so.", within="a1")
    session.stops("a1", "One is done.")
    session.delegated("c5", "a1", "One is done.")
    session.stops("a2", "Two is done.")
    session.delegated("c6", "a2", "Two is done.")
    session.delegates("c10", "Slowly")
    session.delegated("c10", "a4", "", status="async_launched")
    session.tell("Stop", last_assistant_message="Nearly done.", background_tasks=[{"id": "a4"}])
    session.says("And the tests", "p2")
    session.asks("c11", "Bash", command="sleep 1000")
    session.tell("SessionEnd", reason="other")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what is recorded if nobody is ever ended."""
    folder = tmp_path_factory.mktemp("whole") / "shop"
    folder.mkdir()
    with Relay.open("memory:", work_tree=folder, clock=ForwardClock()) as relay:
        recorder = HookRecorder(relay, folder, by="user:ana", work_tree=_tree(folder))
        session = Session(folder, recorder)
        play(session)
        assert EVENTS == len(session.heard)
        relay.verify()
        return told(relay)


def _tree(folder: Path) -> WorkTree:
    return WorkTree(folder, environment={"PATH": "/usr/bin:/bin"}, watch=False)


def _without_flags(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return receipts without what nobody can know who was not there when a call began."""
    for one in found:
        if one["kind"] in {"tool.completed", "tool.failed"}:
            one["body"]["flags"] = []
    return found


def test_the_whole_session_is_as_it_should_be(expected: list[dict[str, Any]]) -> None:
    """What the other tests here compare with has every handoff, call and word in its place."""
    assert {
        "run.started": 1,
        "run.recorded": 3,
        "run.closed": 1,
        "tool.requested": 7,
        "tool.completed": 5,
        "tool.failed": 1,
        "handoff.initiated": 4,
        "handoff.accepted": 4,
        "handoff.completed": 3,
        "handoff.failed": 1,
    } == Counter(one["kind"] for one in expected)


@pytest.mark.parametrize("last", range(1, EVENTS))
def test_ended_between_two_events(
    last: int, project: Path, relay: Relay, record: Callable[[], HookRecorder], expected: list[dict[str, Any]]
) -> None:
    """Whichever they are: whoever comes next records the same, field by field."""
    session = Session(project, record())
    count = iter(range(1, EVENTS + 1))
    session.after = lambda: record() if next(count) == last else session.recorder
    play(session)

    assert _without_flags(told(relay)) == expected


def test_ended_after_every_event(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    """Nobody lives for longer than one event: ledger and keys are opened again every time."""
    folder = tmp_path / "shop"
    folder.mkdir()
    opened: list[Relay] = []
    clock = ForwardClock()

    def start() -> HookRecorder:
        # Not closed: whoever is killed closes nothing.
        url, home = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "home"
        opened.append(Relay.open(url, home=home, keys_in_files=True, work_tree=folder, clock=clock))
        return HookRecorder(opened[-1], folder, by="user:ana", work_tree=_tree(folder))

    play(Session(folder, start(), after=start))
    found = told(opened[-1])
    opened[-1].verify()
    for relay in opened:
        relay.close()

    assert _without_flags(found) == expected
    assert [] == list((tmp_path / "home" / "runs").iterdir())


def test_without_its_key_a_session_goes_on_in_a_root_that_continues_it(tmp_path: Path) -> None:
    """Keys in memory are gone with their process: the root stays open, and what is in it stays true."""
    folder = tmp_path / "shop"
    folder.mkdir()
    found: list[str] = []
    continues: list[str | None] = []
    for prompt in ("p1", "p2"):
        with Relay.open(f"sqlite:///{tmp_path}/ledger.db", home=tmp_path / "home") as relay:
            session = Session(folder, HookRecorder(relay, folder, by="user:ana", work_tree=_tree(folder)))
            session.says(f"Go {prompt}", prompt)
            session.asks(f"c-{prompt}", "Bash", command="sleep 1000")
            found = lines(relay)
            continues = [one["body"]["continues"] for one in receipts(relay, "run.started")]
            relay.verify()

    assert [
        "run-1 run.started p1",
        "run-1 tool.requested c-p1",
        "run-2 run.started p2",
        "run-2 session.resumed",
        "run-2 tool.requested c-p2",
    ] == found
    assert [None, "run-1"] == continues


def test_an_imported_root_is_not_gone_on_with(relay: Relay, record: Callable[[], HookRecorder], project: Path) -> None:
    """It tells what a transcript said, and is over even where an import was cut off."""
    from batonpass.adapters.claude_code.transcripts.transcript_places import PROGRAM  # noqa: PLC0415 - only here
    from batonpass.adapters.importer.import_sources import series_of  # noqa: PLC0415 - only here

    relay.start("Imported", by="user:ana", agent="claude-code", series=series_of(PROGRAM, SESSION))
    session = Session(project, record())
    session.says("Go")

    assert ["run-1 run.started", "run-2 run.started p1", "run-2 session.resumed"] == lines(relay)
