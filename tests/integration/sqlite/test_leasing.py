"""Workers at one file: who only looks keeps nobody waiting, and who does not lease pays nothing for leases."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from batonpass.errors import LeaseLostError, StoreBusyError
from batonpass.store.sqlite import leases
from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.turnstile import Turnstile
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.conformance.leases import A_WHILE, AT_ONCE, claimed, leases_of, taken, waiting
from tests.integration.sqlite.commits import Levels


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


def test_leases_do_not_wait_for_the_disk_and_receipts_do(
    store: SqliteStore, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To claim, renew, give back and seize is committed without waiting; the acceptance under a lease is not."""
    waiting(scribe)
    levels = Levels()
    begin = store._tail.begin

    def note(connection: apsw.Connection) -> None:
        levels.begin(connection)
        begin(connection)

    monkeypatch.setattr(store._tail, "begin", note)
    store.release(store.renew(claimed(store), A_WHILE))
    claimed(store, AT_ONCE)
    seized = store.seize(holder="worker-2", lease_for=A_WHILE)
    assert seized is not None
    taken(scribe, seized)

    assert [1, 1, 1, 1, 1, 2] == levels.seen


def test_a_lease_that_a_power_failure_undid_is_lost(store: SqliteStore, scribe: Scribe, tmp_path: Path) -> None:
    """Where only the claim is gone, the handoff waits as before, and nobody can accept under the old lease."""
    handoff = waiting(scribe)
    (tmp_path / "later").mkdir()
    for name in ("ledger.db", "ledger.db-wal"):  # what the disk has: everything before the claim
        shutil.copy(tmp_path / name, tmp_path / "later" / name)
    lease = claimed(store)
    with closing(SqliteStore(tmp_path / "later" / "ledger.db")) as later:
        again = a_scribe(later, identity=scribe.identity, root=scribe.root)
        with pytest.raises(LeaseLostError):
            taken(again, lease)

        assert [] == leases_of(later)
        assert handoff == claimed(later).handoff


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


@pytest.mark.parametrize("hours", [1, -1])
def test_a_lease_survives_a_clock_that_jumps(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """A worker whose machine is set to another time keeps its lease, and a dead one loses it in time."""
    scribe = a_scribe(store)
    waiting(scribe)
    waiting(scribe)
    lively, dead = claimed(store), claimed(store, timedelta(0))
    today = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: today() + hours * 3600 * 10**9)

    seized = [store.seize(holder="sweeper", lease_for=A_WHILE) for _ in range(2)]
    assert [dead.handoff, None] == [lease and lease.handoff for lease in seized]
    assert lively.handoff == store.renew(lively, A_WHILE).handoff
    queries = (Path(leases.__file__).parent / "leasing.sql").read_text(encoding="utf-8")
    assert ("unixepoch" in queries, "now')" in queries) == (False, False)


def test_a_lease_from_before_a_restart_is_over(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the machine begins anew when it is started: a lease that would begin in the future is an old one."""
    scribe = a_scribe(store)
    first, second = waiting(scribe), waiting(scribe)
    claimed(store)
    store.postpone(second, A_WHILE)
    monkeypatch.setattr(leases, "ticks", lambda: 1_000_000)

    seized = store.seize(holder="sweeper", lease_for=A_WHILE)
    assert first == (seized and seized.handoff)
    assert second == claimed(store).handoff
