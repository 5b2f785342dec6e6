"""Files that change while a run is open: what calls did is explained, and what nobody recorded is found."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass import Grant
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Kind
from batonpass.records.unexplained import read_unexplained
from batonpass.relay import Relay, desk_of
from tests.unit.handoff.places import ANA, Places, bodies, receipts
from tests.unit.handoff.repositories import git, repository, save, write

MAY = ["write:src/**", "call:save", "run:*"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository in which the test works."""
    made = repository(tmp_path / "work")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def places(tmp_path: Path, place: Path) -> Iterator[Places]:  # noqa: ARG001 - relays are opened there
    """Return a ledger in a file, for several relays."""
    made = Places(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return the relay of one process."""
    return places.relay()


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root that may write, and hands on."""
    return relay.start("Fix it", by=ANA, grant=Grant(may=MAY, may_delegate=MAY))


def scribble(place: Path, name: str = "src/a.py", text: str = "scribbled\n") -> None:
    """Write without any call, as a child does that goes round the guard."""
    (place / name).write_text(text, encoding="utf-8")


def told(relay: Relay, kind: Kind = Kind.HANDOFF_COMPLETED) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return the flags of ends, and which files each says that nobody explains."""
    found = []
    for receipt in receipts(relay, kind):
        listed = receipt.content.get("unexplained")
        _, changes = (0, ()) if listed is None else read_unexplained(relay.read(listed.id))
        body: Any = receipt.body
        found.append((body.flags, [one.path for one in changes]))
    return found


FOUND = ("changes.unexplained",)


class TestFinding:
    """A change that no recorded call explains is on the close-out, with its path."""

    def test_a_child_that_writes_without_the_guard_is_found(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """It is found when the child closes, and not told again by whoever handed the work on."""
        with lead.hand_off("editor", "Edit", may=MAY) as editor:
            editor.call(write, "src/b.py", "by a call\n")
            scribble(place)
            assert ["src/a.py"] == [one.path for one in editor.unexplained()]
        lead.close()

        assert [(FOUND, ["src/a.py"])] == told(relay)
        assert [((), [])] == told(relay, Kind.RUN_CLOSED)

    def test_a_child_that_fails_is_looked_at_too(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """How it ended does not matter."""
        editor = lead.hand_off("editor", "Edit", may=MAY).accept()
        (place / "src" / "a.py").unlink()
        editor.fail(ConnectionError("the model is gone"))

        assert [(FOUND, ["src/a.py"])] == told(relay, Kind.HANDOFF_FAILED)

    def test_a_write_between_two_calls_is_found(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """A call that begins from bytes that no call left there does not explain how they came."""
        lead.call(write, "src/a.py", "first\n")
        scribble(place)
        lead.call(write, "src/a.py", "second\n")
        lead.close()

        assert [(FOUND, ["src/a.py"])] == told(relay, Kind.RUN_CLOSED)

    def test_a_directory_whose_name_is_not_utf_8_is_watched_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its whole path is sought in the record as well, and spelled as it is there."""
        place = repository(tmp_path / os.fsdecode(b"caf\xe9"))
        monkeypatch.chdir(place)
        with Relay.open(f"sqlite:///{tmp_path}/ledger.db", home=tmp_path / "home") as relay:
            lead = relay.start("Fix it", by=ANA)
            lead.watch_files()
            lead.call(write, "src/a.py", "two\n")
            scribble(place)
            lead.close()

            assert [(FOUND, ["src/a.py"])] == told(relay, Kind.RUN_CLOSED)

    def test_a_write_that_takes_a_call_back_is_found(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """Each step counts in its direction, and only since the run began."""
        lead.call(write, "src/a.py", "two\n")
        lead.call(write, "src/a.py", "one\n")
        other = relay.start("Look", by=ANA, may=MAY)
        scribble(place, text="two\n")
        other.close()

        assert [(FOUND, ["src/a.py"])] == told(relay, Kind.RUN_CLOSED)

    def test_an_observed_run_is_watched_if_it_asks(self, relay: Relay, place: Path) -> None:
        """From then on; without asking, nothing is looked at."""
        unwatched = relay.start("Fix it", by=ANA)
        asking = relay.start("Fix it", by=ANA)
        scribble(place, "src/before.py")
        asking.watch_files()
        scribble(place)
        asking.close()
        unwatched.close()

        assert [(FOUND, ["src/a.py"]), ((), [])] == told(relay, Kind.RUN_CLOSED)

    def test_a_checkout_by_hand_is_found(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """Git changes files like anybody else; a commit changes none."""
        lead.call(write, "src/a.py", "two\n")
        git(place, "commit", "-qam", "two")
        child = lead.hand_off("editor", "Edit", may=MAY).accept()
        git(place, "commit", "-q", "--allow-empty", "-m", "nothing")
        assert () == child.unexplained()
        git(place, "checkout", "-q", "HEAD~2")
        child.close()

        assert [(FOUND, ["src/a.py"])] == told(relay)


class TestExplaining:
    """What a recorded call did is nobody's finding, whoever made it."""

    def test_calls_and_commands_explain(self, relay: Relay, lead: LiveRun) -> None:
        """A file that arguments name, one that they do not, a rename, a deletion, a checkout, and what is ignored."""
        lead.call(write, "src/a.py", "two\n")
        lead.call(save, "kept\n")
        for script in (
            "git mv src/a.py src/c.py && echo three >> src/c.py",
            'rm src/saved.txt; echo x > x.log; d=$(printf .baton)pass; mkdir "$d"; echo x > "$d/y"',
            "git -c user.name=A -c user.email=a@b.c commit -qam moved; git checkout -q HEAD~1",
        ):
            lead.shell(["sh", "-c", script])
        lead.close()

        assert [((), [])] == told(relay, Kind.RUN_CLOSED)

    def test_a_call_that_fails_explains_what_it_did(self, relay: Relay, lead: LiveRun) -> None:
        """Its receipt says what it changed before that."""

        @tool("spoil", target="path")
        def spoil(path: str) -> None:
            write(path, "spoilt\n")
            raise ConnectionError("gone")

        with pytest.raises(ConnectionError):
            lead.call(spoil, "src/a.py")
        lead.close()

        assert [1] == [len(body.changes) for body in bodies(relay, Kind.TOOL_FAILED)]
        assert [((), [])] == told(relay, Kind.RUN_CLOSED)

    def test_a_sibling_explains(self, relay: Relay, lead: LiveRun, places: Places) -> None:
        """In this process, observed or not, and in another one."""
        with lead.hand_off("editor", "Edit", may=MAY) as editor:
            relay.start("Beside", by=ANA).call(save, "beside\n")
            places.relay().start("Elsewhere", by=ANA).call(write, "src/elsewhere.py", "x\n")
            editor.call(write, "src/a.py", "two\n")

        assert [((), [])] == told(relay)

    def test_a_call_that_is_under_way_will_explain(self, relay: Relay, lead: LiveRun, place: Path) -> None:
        """What it changed until now is not told as nobody's; its own record comes with its outcome."""
        wrote, go_on = threading.Event(), threading.Event()

        @tool("slow")
        def slow() -> None:
            scribble(place, "src/slow.py")
            wrote.set()
            go_on.wait(timeout=30)

        beside = relay.start("Beside", by=ANA)
        thread = threading.Thread(target=lambda: beside.call(slow))
        editor = lead.hand_off("editor", "Edit", may=MAY).accept()
        thread.start()
        wrote.wait(timeout=30)
        editor.close()
        go_on.set()
        thread.join(timeout=30)
        lead.close()

        assert [((), [])] == told(relay)
        assert [((), [])] == told(relay, Kind.RUN_CLOSED)


def test_runs_that_may_write_no_file_are_not_watched(relay: Relay, place: Path) -> None:
    """Nor those for which git does not make it cheap: nothing is looked at then."""
    relay.start("Read", by=ANA, may=["read:**"])
    assert not desk_of(relay).files.is_watched
    with Relay.open("memory:", work_tree=place.parent) as elsewhere:
        elsewhere.start("Write", by=ANA, may=["write:**"])
        assert not desk_of(elsewhere).files.is_watched


@pytest.mark.parametrize("body", [b"", b"[]", b'{"count": 1}', b'{"count": "x", "changes": []}'])
def test_a_list_that_is_none_is_refused(body: bytes) -> None:
    """Whoever reads one is told."""
    with pytest.raises(InvalidValueError, match="unexplained"):
        read_unexplained(body)
