"""Whatever is wrong with the place: one clear sentence, the right class of error, nothing lost."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.dispatch.worker import Worker
from batonpass.errors import (
    GrantError,
    NewerSchemaError,
    NotALedgerError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreShutError,
    StoreUnavailableError,
)
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import Scribe, a_scribe, a_small_tree
from tests.integration.sqlite.places import a_public_place, a_small_disk, as_nobody, filled, publish
from tests.unit.dispatch.fleets import until

LARGE = "y" * 100_000


@pytest.fixture
def disk() -> Iterator[Path]:
    """Give a disk of two megabytes."""
    with a_small_disk(kilobytes=2048) as place:
        yield place


@pytest.fixture
def public() -> Iterator[Path]:
    """Give a directory that others can read."""
    with a_public_place() as place:
        yield place


def a_ledger(path: Path) -> Path:
    """Record a small tree, and close the ledger."""
    store = SqliteStore(path)
    a_small_tree(a_scribe(store))
    store.close()
    return path


def count(path: Path) -> int:
    """Open a ledger, verify it, and return how many receipts it has."""
    store = SqliteStore(path)
    try:
        return verify_ledger(store).receipts
    finally:
        store.close()


def record(path: Path) -> None:
    """Open a ledger and record in it."""
    a_scribe(SqliteStore(path)).start()


def is_one_sentence(error: StoreError) -> bool:
    """Return whether an error is a line that a person can read."""
    text = str(error)
    return text == text.strip() and "\n" not in text and 20 < len(text) < 300


def assert_says(error: str, answer: str, words: str) -> None:
    """See that an answer is one line, of this class, with these words."""
    assert (error, True, 1) == (answer.partition(":")[0], words in answer, len(answer.splitlines())), answer


def test_a_full_disk_refuses_and_loses_nothing(disk: Path) -> None:
    """Without room an append is refused whole; what was acknowledged is there; with room again it goes on."""
    store = SqliteStore(disk / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    scribe.call(lead)
    with filled(disk):
        for _ in range(3):
            with pytest.raises(StoreFullError, match=r"no room left.*nothing was recorded") as refused:
                scribe.call(lead)
            assert is_one_sentence(refused.value)
        assert 4 == verify_ledger(store).receipts
    scribe.call(lead)

    assert 6 == verify_ledger(store).receipts
    store.close()
    assert 6 == count(disk / "ledger.db")


def test_a_disk_that_fills_up_while_writing_keeps_what_it_acknowledged(disk: Path) -> None:
    """Write until there is no more room: every call that returned is there, and the one that failed is not."""
    store = SqliteStore(disk / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    acknowledged: list[str] = []

    def write_on() -> None:
        while True:
            acknowledged.append(scribe.recording.request(lead, "write_file", "x" * 10_000))

    with pytest.raises(StoreFullError):
        write_on()

    assert 2 + len(acknowledged) == verify_ledger(store).receipts
    store.close()


def test_a_large_content_without_room_leaves_no_file(disk: Path) -> None:
    """A body that does not fit beside the ledger is refused, and no part of it stays."""
    store = SqliteStore(disk / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    with filled(disk), pytest.raises(StoreFullError, match="no room left for a content of 100,000 bytes") as refused:
        scribe.recording.request(lead, "write_file", LARGE)

    assert is_one_sentence(refused.value)
    assert (set(), []) == (store.lost_files(), list(disk.rglob("content_*")))
    scribe.recording.request(lead, "write_file", LARGE)
    assert 3 == verify_ledger(store).receipts
    store.close()


def test_a_ledger_is_not_founded_on_a_full_disk(disk: Path) -> None:
    """Where there is no room, a new ledger is refused for that reason."""
    with filled(disk), pytest.raises(StoreFullError) as refused:
        SqliteStore(disk / "ledger.db")

    assert is_one_sentence(refused.value)


def test_a_ledger_on_a_full_disk_can_be_read(disk: Path) -> None:
    """Reopened without room: everything can be read, and writing is refused for that reason."""
    store = SqliteStore(disk / "ledger.db")
    before = a_scribe(store)
    before.start()
    store.close()
    with filled(disk):
        store = SqliteStore(disk / "ledger.db")
        assert 2 == verify_ledger(store).receipts
        with pytest.raises(StoreFullError):
            a_scribe(store, identity=before.identity, root=before.root).start()
        store.close()

    assert 2 == count(disk / "ledger.db")


def test_a_limit_of_the_database_itself_is_a_full_disk(tmp_path: Path) -> None:
    """When SQLite says full, whoever appends is told so, and can go on when the limit is gone."""
    store = SqliteStore(tmp_path / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    connection = store._writer._connection  # type: ignore[union-attr]
    connection.pragma("max_page_count", connection.pragma("page_count"))
    with pytest.raises(StoreFullError):
        scribe.recording.request(lead, "write_file", "x" * 60_000)
    connection.pragma("max_page_count", 1_000_000)
    scribe.recording.request(lead, "write_file", "x" * 60_000)

    assert 3 == verify_ledger(store).receipts
    store.close()


def test_somebody_elses_ledger_can_be_read_and_not_written(public: Path) -> None:
    """Who may only read, reads and verifies; a try to write says that it cannot be."""
    path = a_ledger(public / "ledger.db")
    publish(public)

    assert "17" == as_nobody(lambda: count(path))
    assert_says("StoreReadOnlyError", as_nobody(lambda: record(path)), str(public))
    assert 17 == count(path)


def test_somebody_elses_ledger_can_be_read_while_it_is_written(public: Path) -> None:
    """Beside a process that writes, a reader who may not write sees everything that was acknowledged."""
    store = SqliteStore(public / "ledger.db")
    scribe = a_scribe(store)
    a_small_tree(scribe)
    publish(public)

    assert "17" == as_nobody(lambda: count(public / "ledger.db"))
    scribe.start()
    assert "18" == as_nobody(lambda: count(public / "ledger.db"))
    store.close()


def test_a_copy_that_cannot_be_written_hides_nothing(public: Path, tmp_path: Path) -> None:
    """A copy with a log that was not folded in, where nothing can be written: read whole or refused, never in part."""
    store = SqliteStore(tmp_path / "ledger.db")
    scribe = a_scribe(store)
    a_small_tree(scribe)
    store._writer.checkpoint()  # type: ignore[union-attr]
    scribe.start()
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copy(tmp_path / name, public / name)
    publish(public)
    answer = as_nobody(lambda: count(public / "ledger.db"))
    store.close()

    assert answer == "18" or answer.startswith("StoreReadOnlyError: ")


def test_a_ledger_that_one_may_not_read_is_refused(public: Path) -> None:
    """A private file is private, and the error says where to look."""
    path = a_ledger(public / "ledger.db")

    assert_says("StoreUnavailableError", as_nobody(lambda: count(path)), "permissions")


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(SqliteStore, id="opened"),
        pytest.param(lambda path: open_store(f"sqlite:///{path}", create=False), id="opened for reading"),
    ],
)
def test_a_directory_that_one_may_not_enter_is_refused(public: Path, act: Callable[[Path], object]) -> None:
    """Behind a closed door there may be anything; the answer is still one of our sentences."""
    (public / "private").mkdir(mode=0o700)

    assert_says(
        "StoreUnavailableError",
        as_nobody(lambda: act(public / "private" / "ledger.db")),
        str(public / "private"),
    )


def test_a_new_ledger_where_one_may_not_write_is_refused(public: Path) -> None:
    """No file can be made there, and the error says so."""
    assert_says("StoreReadOnlyError", as_nobody(lambda: record(public / "ledger.db")), str(public))


def make_directory(path: Path) -> None:
    path.mkdir()


def make_noise(path: Path) -> None:
    path.write_bytes(os.urandom(10_000))


def make_text(path: Path) -> None:
    path.write_text("This is not a ledger but a text that somebody needs.\n" * 100)


def make_database(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('ana')")


def make_empty_database(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 7)


def make_stub(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def make_newer(path: Path) -> None:
    a_ledger(path)
    with apsw.Connection(str(path)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'future', 0)")


def make_damaged(path: Path) -> None:
    whole = a_ledger(path.with_name("whole.db"))
    connection = apsw.Connection(str(whole))
    connection.execute("VACUUM INTO ?", (str(path),))
    connection.close()
    data = bytearray(path.read_bytes())
    data[8192:-8192] = os.urandom(len(data) - 16384)
    path.write_bytes(bytes(data))


PLACES = [
    pytest.param(make_directory, StoreUnavailableError, "is a directory", id="a directory"),
    pytest.param(make_noise, NotALedgerError, "is not a ledger", id="noise"),
    pytest.param(make_text, NotALedgerError, "is not a ledger", id="a text"),
    pytest.param(make_stub, NotALedgerError, "is not a ledger", id="a header and nothing more"),
    pytest.param(make_database, NotALedgerError, "another program's database", id="another program's database"),
    pytest.param(make_empty_database, NotALedgerError, "another program's database", id="an empty database"),
    pytest.param(make_newer, NewerSchemaError, "has schema 99.*upgrade", id="a ledger of a newer version"),
]


@pytest.mark.parametrize(("make", "error", "says"), PLACES)
def test_what_is_no_ledger_of_ours_is_refused_and_kept(
    tmp_path: Path,
    make: Callable[[Path], None],
    error: type[StoreError],
    says: str,
) -> None:
    """Whatever is in the ledger's place, one sentence says what it is, and it is as it was."""
    path = tmp_path / "ledger.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(error, match=says) as refused:
        SqliteStore(path)

    assert error is refused.type
    assert is_one_sentence(refused.value)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert not (tmp_path / "ledger.db.batonpass").exists() or make is make_newer


def test_a_damaged_ledger_says_so(tmp_path: Path) -> None:
    """Pages that were overwritten are found when they are read, as an error of ours."""
    make_damaged(tmp_path / "ledger.db")

    with pytest.raises(StoreError) as refused:
        count(tmp_path / "ledger.db")

    assert is_one_sentence(refused.value)


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """A path through nowhere is refused, and nothing is made."""
    with pytest.raises(StoreUnavailableError, match=f"no directory {tmp_path}/nowhere") as refused:
        SqliteStore(tmp_path / "nowhere" / "ledger.db")

    assert is_one_sentence(refused.value)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "removed"])
def test_a_ledger_that_is_replaced_while_it_is_open_is_noticed(tmp_path: Path, replaced: bool) -> None:  # noqa: FBT001
    """Somebody puts another file in its place: nothing more is written anywhere, and the other file is as it was."""
    other = a_ledger(tmp_path / "other.db")
    store = SqliteStore(tmp_path / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    (tmp_path / "ledger.db").unlink()
    if replaced:
        shutil.copy(other, tmp_path / "ledger.db")

    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="was replaced or removed") as refused:
            scribe.call(lead)
        assert is_one_sentence(refused.value)
    if replaced:
        assert other.read_bytes() == (tmp_path / "ledger.db").read_bytes()
    store.close()


def test_another_program_that_locks_the_file_is_waited_for_and_named(tmp_path: Path) -> None:
    """A program that knows nothing of our locks holds the database: an append fails in time, and later succeeds."""
    store = SqliteStore(tmp_path / "ledger.db")
    scribe: Scribe = a_scribe(store)
    lead = scribe.start()
    store._writer._connection.set_busy_timeout(50)  # type: ignore[union-attr]
    other = apsw.Connection(str(tmp_path / "ledger.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another program has locked") as refused:
        scribe.call(lead)
    other.close()
    scribe.call(lead)

    assert is_one_sentence(refused.value)
    assert 4 == verify_ledger(store).receipts
    store.close()


def test_a_closed_ledger_refuses(tmp_path: Path) -> None:
    """After closing, once or twice, nothing is read or written any more."""
    store = SqliteStore(tmp_path / "ledger.db")
    scribe = a_scribe(store)
    lead = scribe.start()
    store.close()
    store.close()

    with pytest.raises(StoreShutError):
        scribe.call(lead)
    with pytest.raises(StoreShutError), store.view():
        pytest.fail("a closed ledger was opened")
    with pytest.raises((StoreShutError, StoreReadOnlyError)):
        store.migrate()


def test_a_worker_lives_through_a_full_disk(disk: Path) -> None:
    """While the disk is full it says so and waits; when there is room again, it goes on by itself."""
    troubles: list[StoreError | GrantError] = []
    stop = threading.Event()
    with Relay.open(f"sqlite:///{disk / 'ledger.db'}", home=disk / "home") as relay:
        relay.register("editor", lambda run: run.task)
        offered = relay.start("Edit it", by="user:ana").hand_off("editor", "the file", carrier="worker")
        worker = Worker(relay, troubled=troubles.append, lease_for=timedelta(seconds=0.2))
        with filled(disk):
            thread = threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(seconds=0.02)})
            thread.start()
            until(lambda: any(isinstance(trouble, StoreFullError) for trouble in troubles))
        until(lambda: offered.result().delivered)
        stop.set()
        thread.join(30)
        relay.verify()
