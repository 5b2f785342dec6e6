"""A ledger that was put back in time: whoever wrote to it before does not go on as if nothing were lost."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apsw
import pytest

from batonpass.errors import RewoundError
from batonpass.ledger.acknowledged_head import FILE
from batonpass.relay import Relay
from batonpass.store.postgres.store import PostgresStore
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import ANA, a_scribe, a_small_tree
from tests.postgres_server import Server


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return a ledger in which something was recorded."""
    path = tmp_path / ".batonpass" / "ledger.db"
    with opened(path) as relay:
        relay.start("Before", by=ANA).close()
    return path


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Relay]:
    """Open a ledger as the relay whose key lies beside it."""
    with Relay.open(f"sqlite:///{path}") as relay:
        yield relay


def back_up(path: Path) -> Path:
    """Return a copy of a ledger as it is now."""
    copy = path.with_name("backup.db")
    restore(path, copy)
    return copy


def restore(copy: Path, path: Path) -> None:
    """Put a copy in the place of a ledger, inside of the same file: nobody who has it open sees another file."""
    with (
        contextlib.closing(apsw.Connection(str(copy))) as old,
        contextlib.closing(apsw.Connection(str(path))) as new,
        new.backup("main", old, "main") as backup,
    ):
        backup.step()


def test_a_restored_file_is_noticed_while_a_relay_runs(ledger: Path) -> None:
    """A tree was recorded and is gone as a whole: no stream that is left shows it, and nothing more is recorded."""
    with opened(ledger) as relay:
        lead = relay.start("Goes on", by=ANA)
        copy = back_up(ledger)
        relay.start("Lost", by=ANA).close()
        restore(copy, ledger)
        for act in (lambda: relay.start("Another", by=ANA), lambda: lead.hand_off("editor", "Edit")):
            with pytest.raises(RewoundError, match="replaced or restored"):
                act()
        with relay.store.view() as view:
            assert 2 == view.counts().runs


@pytest.mark.parametrize("way", ["in the same file", "as another file"])
def test_a_restored_file_is_noticed_by_the_next_process(ledger: Path, way: str) -> None:
    """What was acknowledged is remembered beside the key; reading goes on, writing does not."""
    copy = back_up(ledger)
    with opened(ledger) as relay:
        relay.start("Lost", by=ANA).close()
    if way == "in the same file":
        restore(copy, ledger)
    else:
        shutil.copyfile(copy, ledger)
    with opened(ledger) as relay:
        assert 1 == relay.verify().runs
        with pytest.raises(RewoundError, match=f"on purpose, remove .*{FILE}"):
            relay.start("Another", by=ANA)

    (ledger.parent / FILE).unlink()
    with opened(ledger) as relay:
        relay.start("On purpose", by=ANA).close()
        assert 2 == relay.verify().runs


def test_a_restored_file_is_noticed_by_the_thread_whose_receipt_is_lost(ledger: Path) -> None:
    """Somebody who knows of nothing later may write to the restored file; whoever knows of more still finds it out."""
    with opened(ledger) as one, opened(ledger) as other:
        one.start("Kept", by=ANA).close()
        copy = back_up(ledger)
        other.start("Lost", by=ANA).close()
        restore(copy, ledger)
        one.start("Goes on", by=ANA).close()
        for _ in range(2):
            with pytest.raises(RewoundError, match="replaced or restored"):
                other.start("Another", by=ANA)


def test_a_ledger_that_only_grew_is_taken(ledger: Path) -> None:
    """Others may have written meanwhile, also into the stream that is remembered."""
    with opened(ledger) as one, opened(ledger) as other:
        for number in range(3):
            for relay in (one, other):
                relay.start(f"Run {number}", by=ANA).close()
    with opened(ledger) as relay:
        relay.start("Afterwards", by=ANA).close()
        assert 8 == relay.verify().runs


@pytest.mark.parametrize(
    "words",
    [b"", b"{}", b"[" * 100_000, b"\xff", b'{"ledger":"other"}'],
    ids=["nothing", "no mark", "a nest", "no text", "half"],
)
def test_what_cannot_be_read_beside_the_key_is_passed_over(ledger: Path, words: bytes) -> None:
    """Whoever can write there can also remove it: it is a net for accidents, and stops nobody by itself."""
    (ledger.parent / FILE).write_bytes(words)
    with opened(ledger) as relay:
        relay.start("Goes on", by=ANA).close()
        assert 2 == relay.verify().runs


def test_a_new_ledger_in_the_same_place_is_another_one(ledger: Path) -> None:
    """What was acknowledged by the one before says nothing about it."""
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()
    with opened(ledger) as relay:
        relay.start("From the beginning", by=ANA).close()
        assert 1 == relay.verify().runs


@pytest.mark.postgres
def test_a_restored_database_is_noticed(postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on a server, where the store is asked once in a while, and then before the next receipt."""
    monkeypatch.setattr(PostgresStore, "confirm_every", 0.0)
    with contextlib.closing(PostgresStore(postgres_url)) as store:
        scribe = a_scribe(store)
        a_small_tree(scribe)
        database = urlsplit(postgres_url).path.removeprefix("/")
        a_small_tree(scribe)
        tables = ("receipts", "streams", "runs", "handoffs", "contents", "positions", "unsequenced", "statements")
        postgres.execute(f"TRUNCATE {', '.join(tables)}", database=database)
        with pytest.raises(RewoundError):
            scribe.start()


def test_the_store_is_not_asked_more_often_than_it_wants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where asking costs a round trip, it is done once in a while."""
    asked: list[Any] = []
    with Relay.open(f"sqlite:///{tmp_path / 'ledger.db'}") as relay:
        relay.start("Before", by=ANA).close()
        membership = relay._membership
        monkeypatch.setattr(type(relay.store), "confirm_every", 3600.0)
        monkeypatch.setattr(type(membership._acknowledged), "_confirm", lambda *given: asked.append(given))
        for _ in range(3):
            relay.start("Again", by=ANA).close()

    assert 1 == len(asked)


def test_a_store_that_is_asked_rarely_is_still_found_out(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written to the restored store before it was asked is there; what was there before is not."""
    with opened(ledger) as relay:
        copy = back_up(ledger)
        relay.start("Lost", by=ANA).close()
        acknowledged = relay._membership._acknowledged
        monkeypatch.setattr(type(relay.store), "confirm_every", 3600.0)
        acknowledged.latest()
        restore(copy, ledger)
        relay.start("Unnoticed", by=ANA).close()
        monkeypatch.setattr(acknowledged, "_asked_at", None)
        with pytest.raises(RewoundError):
            relay.start("Noticed", by=ANA)


def test_what_is_acknowledged_while_the_store_is_asked_is_not_lost(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread writes between the moment that a view shows and the question: that is nobody's loss."""
    monkeypatch.setattr(SqliteStore, "confirm_every", 0.0)
    with opened(ledger) as relay:
        relay.start("First", by=ANA).close()
        acknowledged, viewed = relay._membership._acknowledged, relay.store.view

        @contextlib.contextmanager
        def slow_view() -> Iterator[Any]:
            with viewed() as view:
                view.counts()  # SQLite shows the moment of the first look
                slowly.undo()
                relay.start("Meanwhile", by=ANA).close()
                yield view

        slowly = pytest.MonkeyPatch()
        slowly.setattr(relay.store, "view", slow_view)
        acknowledged.latest()

        assert 3 == relay.verify().runs
