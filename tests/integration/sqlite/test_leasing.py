"""Workers at one file: who only looks keeps nobody waiting, and who does not lease pays nothing for leases."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from batonpass.errors import StoreBusyError
from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.turnstile import Turnstile
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.conformance.leases import A_WHILE, claimed, leases_of, taken, waiting


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Return a store that does not wait for long."""
    with closing(SqliteStore(tmp_path / "ledger.db", wait_for=0.05)) as store:
        yield store


@pytest.fixture
def scribe(store: SqliteStore) -> Scribe:
    """Return a relay that records in the store."""
    return a_scribe(store)


@pytest.mark.usefixtures("scribe")
def test_who_finds_nothing_waits_for_nobody(store: SqliteStore) -> None:
    """A worker that looks for work, and finds none, does not stand in the line of those who write."""
    turnstile = Turnstile(store.home)
    turnstile.enter(time.monotonic() + 5)

    assert store.claim(holder="worker", lease_for=A_WHILE) is None
    assert store.seize(holder="worker", lease_for=A_WHILE) is None
    turnstile.close()


def test_who_finds_something_stands_in_line(store: SqliteStore, scribe: Scribe) -> None:
    """A claim is a write: it waits for whoever writes, and takes nothing if that takes too long."""
    waiting(scribe)
    turnstile = Turnstile(store.home)
    turnstile.enter(time.monotonic() + 5)

    with pytest.raises(StoreBusyError):
        store.claim(holder="worker", lease_for=A_WHILE)

    turnstile.close()
    assert [] == leases_of(store)
    assert [claimed(store)] == leases_of(store)


def test_another_process_sees_the_lease(store: SqliteStore, scribe: Scribe, tmp_path: Path) -> None:
    """A lease is in the file: whoever opens it there finds it, and can give it back."""
    waiting(scribe)
    lease = claimed(store)
    with closing(SqliteStore(tmp_path / "ledger.db")) as other:
        assert [lease] == leases_of(other)
        assert other.claim(holder="other", lease_for=A_WHILE) is None
        other.release(lease)

    assert [] == leases_of(store)


def test_what_its_caller_carries_asks_for_no_lease(store: SqliteStore, scribe: Scribe) -> None:
    """Offering, accepting and closing in one process never touches the leases."""
    statements: list[str] = []

    def listen(_: apsw.Cursor, statement: str, __: object) -> bool:
        statements.append(statement)
        return True

    lead = scribe.start()
    assert store._writer is not None
    store._writer._connection.exec_trace = listen
    scribe.recording.close(scribe.delegate(lead))
    carried = [statement for statement in statements if "leases" in statement]
    waiting(scribe, parent=lead)
    scribe.recording.close(taken(scribe, claimed(store)))

    assert [] == carried
    assert [] != [statement for statement in statements if "leases" in statement]
