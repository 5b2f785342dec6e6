"""Starting a run, and where it is recorded."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import batonpass
from batonpass import Decision, Relay, current_run
from batonpass.errors import CallDeniedError, FencedError, InvalidValueError, StoreError
from batonpass.testing import a_relay, a_run, an_attempt, observe


@pytest.mark.parity("start-names-intent-and-principal")
def test_a_start_records_intent_principal_and_agent() -> None:
    """The words of the person as they are, for whom the work is done, and which agent works."""
    with a_relay() as relay:
        run = relay.start("Fix rounding — “half-even”", by="user:ana", agent="planner")
        started = observe(relay).last("run.started")

    assert "Fix rounding — “half-even”" == started.text("intent")
    assert {"principal": "user:ana", "agent": "planner", "run": run.id}.items() <= started.body.items()
    assert ("user:ana", "planner", run.id, "Fix rounding — “half-even”") == (
        run.principal,
        run.agent,
        run.root,
        run.task,
    )


@pytest.mark.parity("grant-enforces-a-run")
@pytest.mark.parametrize(
    ("may", "mode"), [pytest.param(["call:**"], "enforced", id="a grant"), pytest.param([], "observed", id="no grant")]
)
def test_a_grant_enforces_a_run_from_its_start(may: list[str], mode: str) -> None:
    """Every receipt of the tree says whether it was enforced."""
    with a_relay() as relay:
        run = an_attempt(relay, may=may or None)
        run.call(str, "x")
        run.close()
        seen = observe(relay)

    assert mode == run.mode
    assert {mode} == {receipt.mode for receipt in seen.receipts if receipt.kind != "key.enrolled.relay"}


def test_a_child_of_an_observed_run_may_be_enforced() -> None:
    """A grant begins where it is given."""
    with a_relay() as relay:
        child = a_run(relay).hand_off("editor", "x", may=["read:**"], accept=True)

        assert "enforced" == child.mode


def test_what_a_run_knows_from_its_start_reaches_its_children() -> None:
    """Items that are given with the start stand in its first receipt."""
    with a_relay() as relay:
        root = a_run(relay, items=[Decision("half-even", why="the law")])
        child = root.hand_off("editor", "x", accept=True)

        assert (Decision("half-even", why="the law"),) == child.baton.items
        assert ["run.started", "handoff.initiated", "handoff.accepted"] == observe(relay).kinds()


def in_repository(path: Path) -> None:
    (path / ".git").mkdir(parents=True)


@pytest.mark.parity("start-uses-the-default-relay")
def test_a_first_program_needs_no_relay(record_place: Path) -> None:
    """`start` records in the ledger of the repository, which `Relay.open` finds from any folder of it."""
    in_repository(record_place)
    with batonpass.start("Fix rounding", by="user:ana") as run:
        assert run is current_run()
    (record_place / "src").mkdir()
    os.chdir(record_place / "src")
    with Relay.open(create=False) as relay:
        assert [run.id] == [info.id for info in relay.runs()]
        assert ["run.started", "run.closed"] == observe(relay).kinds()
    assert current_run() is None


@pytest.mark.parity("relay-opens-its-ledger")
@pytest.mark.parametrize(
    "ledger_of",
    [
        pytest.param(lambda _: None, id="the repository's"),
        pytest.param(lambda path: path / "ledger.db", id="a file"),
        pytest.param(lambda path: str(path / "ledger.db"), id="a file by its name"),
        pytest.param(lambda path: f"sqlite:///{path}/ledger.db", id="a URL of SQLite"),
    ],
)
def test_a_relay_opens_its_ledger(ledger_of: Callable[[Path], Path | str | None], tmp_path: Path) -> None:
    """What one process recorded another finds by the same words."""
    with Relay.open(ledger_of(tmp_path)) as relay:
        run = a_run(relay)
    with Relay.open(ledger_of(tmp_path), create=False) as relay:
        assert [run.id] == [info.id for info in relay.runs()]


@pytest.mark.postgres
@pytest.mark.parity("relay-opens-its-ledger")
def test_a_relay_opens_a_ledger_on_a_server(postgres_url: str) -> None:
    """PostgreSQL by its URL, with the same acts."""
    with Relay.open(postgres_url) as relay:
        run = an_attempt(relay)
        run.call(str, "x")
        run.close()
    with Relay.open(postgres_url, create=False) as relay:
        assert run.id in [info.id for info in relay.runs()]
        assert 7 == relay.verify().receipts


@pytest.mark.parametrize("ledger", ["mysql://server/db", "http://server"])
def test_what_is_no_ledger_is_refused(ledger: str) -> None:
    """The sentence says what there is."""
    with pytest.raises(InvalidValueError, match="is no ledger"):
        Relay.open(ledger)


def test_a_ledger_that_is_not_there_is_not_made_to_be_read(tmp_path: Path) -> None:
    """Reading asks for nothing that has to be made."""
    with pytest.raises(StoreError, match="there is no ledger"):
        Relay.open(tmp_path / "none.db", create=False)


@pytest.mark.parity("record-is-outside-the-work-tree")
def test_the_record_is_outside_of_the_work_tree(record_place: Path, tmp_path: Path) -> None:
    """No command on the tree shows, commits or deletes it; and only its user may read it."""
    subprocess.run(["git", "init", "-q"], check=True)
    batonpass.start("Fix rounding", by="user:ana").close()
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]

    assert [record_place / ".git"] == list(record_place.iterdir())
    assert "" == subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
    assert {"ledger.db", "relay.key", "root.key", "place.json"} <= {path.name for path in files}
    assert {0o700} == {path.parent.stat().st_mode & 0o777 for path in files}


def test_a_takeover_fences_handles_of_the_same_process() -> None:
    """The handle that had the root before can do nothing in its name, also where both share a relay."""
    with a_relay() as relay:
        first = a_run(relay)
        second = relay.resume(first.id)

        with pytest.raises(FencedError):
            first.call(print)
        with pytest.raises(FencedError):
            first.close()
        second.call(print)
        second.close()


def test_an_empty_list_of_permits_is_a_grant_of_nothing() -> None:
    """A program that filters permits down to none does not grant everything."""
    with a_relay() as relay:
        run = relay.start("Look", by="user:ana", may=[])

        assert "enforced" == run.mode
        with pytest.raises(CallDeniedError):
            run.call(print)
