"""Appends that wait together are written by few statements, and leave what each by itself would have left."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from batonpass import Brief
from batonpass.dispatch.worker import Worker
from batonpass.errors import BatonpassError, DuplicateReceiptError, PremiseError, RewoundError, StaleHeadError
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.entry import Entry, Premise
from batonpass.relay import Relay
from batonpass.store.port import LedgerInfo
from batonpass.store.sqlite import group_commit
from batonpass.store.sqlite.append_together import AppendTogether, RefusedTogetherError
from batonpass.store.sqlite.store import SqliteStore
from tests.integration.sqlite.tails import settle

LEADS = 7
MANY = 70  # more rows than one statement takes


def write_file(path: str, text: str) -> str:
    """Pretend to write."""
    return f"{path}: {len(text)}"


class Recorded(SqliteStore):
    """A store that remembers what was appended to it, in waves that could have been written together."""

    waves: list[list[Entry]]
    founding: tuple[LedgerInfo, Entry]

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Found the ledger, and remember it."""
        self.founding, self.waves = (info, first), [[]]
        return super().found(info, first)

    def append(self, entries: Sequence[Entry]) -> None:
        """Append, and remember it."""
        super().append(entries)
        # Callers whose appends are under way at once have all seen what was acknowledged before the first of them.
        wave = self.waves[-1]
        wave.extend(replace(entry, after=wave[0].after if wave else entry.after) for entry in entries)


def recorded(path: Path, leads: int = LEADS) -> Recorded:
    """Return a store in which each lead has handed off, twice, and one child has called a tool, step by step."""
    path.mkdir()
    store = Recorded(path / "ledger.db")
    with Relay(store, home=path) as relay:
        runs = [relay.start("Bill last year", by="user:ana", agent="lead") for _ in range(leads)]
        offers: list[Any] = []
        children: list[Any] = []
        brief = Brief(rationale="You know the code.", criteria=("it adds up",))
        steps: tuple[Callable[[int], object], ...] = (
            lambda at: offers.append(runs[at].hand_off("editor", f"Mend {at}", brief=brief)),
            lambda at: children.append(offers[at].accept()),
            lambda at: children[at].record(Decision("Half-even, on the sum.", why="As agreed.")),
            lambda at: children[at].close(),
            lambda at: runs[at].hand_off("carrier", f"Carry {at}", carrier=Carrier.WORKER),
        )
        for step in steps:
            store.waves.append([])
            for at in range(leads):
                step(at)
    return store


@contextmanager
def empty_like(store: Recorded, path: Path) -> Iterator[SqliteStore]:
    """Yield a ledger that was founded as another was, and has the entries that came before the first step."""
    path.mkdir()
    other = SqliteStore(path / "ledger.db")
    other.found(*store.founding)
    for entry in store.waves[0]:
        other.append([entry])
    yield other
    other.close()


def write_together(store: SqliteStore, entries: Sequence[Entry]) -> None:
    """Write entries as a batch does."""
    way = AppendTogether(store._tail)
    assert all(way.can_join([entry]) for entry in entries)
    store._write(lambda connection: way.write(entries, connection))


def dump(store: SqliteStore) -> dict[str, list[Any]]:
    """Return all rows of all tables, but when migrations were applied."""
    reader = apsw.Connection(str(store._path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    kept = {name: reader.execute(f"SELECT * FROM {name}").fetchall() for name in tables if name != "schema_migrations"}
    reader.close()
    return kept


@pytest.mark.parametrize("leads", [LEADS, MANY])
def test_many_at_once_leave_the_same_rows_as_one_after_the_other(tmp_path: Path, leads: int) -> None:
    """Every column of every table, and the numbers of streams, receipts and contents."""
    store = recorded(tmp_path / "recorded", leads)
    with empty_like(store, tmp_path / "apart") as apart, empty_like(store, tmp_path / "together") as together:
        for wave in store.waves[1:]:
            for entry in wave:
                apart.append([entry])
            write_together(together, wave)
        # A batch settles the tail at its end, and not in the middle.
        settle(apart)
        settle(together)
        expected, found = dump(apart), dump(together)

        assert [] == [table for table, rows in expected.items() if found[table] != rows]
        assert leads == len(found["leases"])


def refusals(store: Recorded) -> Iterator[tuple[str, int, Callable[[Entry], Entry], type[BatonpassError]]]:
    """Yield what can be wrong with one entry: its wave, what is changed in it, and how it is refused alone."""
    root = store.waves[0][-1].signed.receipt.root
    assert root is not None
    said = Premise(root=root, statements=4)
    touched = Premise(root=root, statements=1, untouched=(HandoffId(root),))
    first = store.waves[1][0]
    yield "premise", 1, lambda entry: replace(entry, premise=said), PremiseError
    yield "touched", 1, lambda entry: replace(entry, premise=touched), PremiseError
    yield "stale", 1, lambda _: store.waves[3][0], BatonpassError
    yield "content taken", 1, lambda entry: replace(entry, contents=first.contents), DuplicateReceiptError


@pytest.mark.parametrize("wrong", ["premise", "touched", "stale", "content taken"])
def test_one_that_is_refused_refuses_all_and_is_told_why_by_itself(tmp_path: Path, wrong: str) -> None:
    """Nothing is left of the batch; each by itself, the others are written."""
    store = recorded(tmp_path / "recorded")
    (at, change, expected) = next((at, change, why) for name, at, change, why in refusals(store) if name == wrong)
    wave = [*store.waves[at]]
    wave[-1] = change(wave[-1])
    with empty_like(store, tmp_path / "other") as other:
        before = dump(other)
        with pytest.raises((RefusedTogetherError, RewoundError)):
            write_together(other, wave)
        assert [] == [table for table, rows in dump(other).items() if before[table] != rows]

        for entry in wave[:-1]:
            other.append([entry])
        with pytest.raises(expected):
            other.append([wave[-1]])
        assert len(before["receipts"]) + len(wave) - 1 == len(dump(other)["receipts"])


def test_the_same_entry_twice_is_left_to_the_careful_way(tmp_path: Path) -> None:
    """Somebody who does not know whether a commit happened appends again, and that is not an error."""
    store = recorded(tmp_path / "recorded")
    with empty_like(store, tmp_path / "other") as other:
        write_together(other, store.waves[1])
        with pytest.raises(RefusedTogetherError):
            write_together(other, store.waves[1])

        other.append([store.waves[1][0]])

        assert len(store.waves[0]) + 1 + LEADS == len(dump(other)["receipts"])


def test_two_receipts_of_one_stream_are_not_both_written_at_one_place(tmp_path: Path) -> None:
    """Two relays may have seen the same head. One of them has to look again."""
    store = recorded(tmp_path / "recorded")
    with empty_like(store, tmp_path / "other") as other:
        one = store.waves[1][0]
        rival = replace(one, signed=replace(one.signed, digest="0" * 64), contents=())
        with pytest.raises(RefusedTogetherError):
            write_together(other, [one, rival, *store.waves[1][1:]])

        other.append([one])
        with pytest.raises(StaleHeadError):
            other.append([rival])


def test_what_threads_bring_at_once_is_written_together_and_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers and workers side by side; a batch takes few statements, however many appends are in it."""
    sizes: list[int] = []
    write = AppendTogether.write

    def counted(self: AppendTogether, entries: Sequence[Entry], connection: apsw.Connection) -> None:
        write(self, entries, connection)
        sizes.append(len(entries))

    monkeypatch.setattr(AppendTogether, "write", counted)
    monkeypatch.setattr(group_commit, "_ENOUGH_TO_JOIN", 2)
    threads, each = 16, 6
    with Relay.open(tmp_path / "ledger.db", home=tmp_path) as relay:
        leads = [relay.start("Bill last year", by="user:ana", agent="lead") for _ in range(threads)]
        relay.register("carrier", lambda _: None)
        together = Barrier(threads)

        def work(at: int) -> None:
            worker = Worker(relay)
            together.wait()
            for number in range(each):
                with leads[at].hand_off("editor", f"Mend {at}.{number}") as child:
                    child.call(write_file, "a.py", "text")
                leads[at].hand_off("carrier", f"Carry {at}.{number}", carrier=Carrier.WORKER)
                while not worker.work_one():
                    pass

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        for lead in leads:
            lead.close()
        evidence = relay.verify()

    assert sizes
    assert max(sizes) > 1
    assert evidence.receipts > threads * each * 8


@pytest.mark.parametrize(("few", "many"), [(4, 64)])
def test_statements_do_not_grow_with_the_batch(tmp_path: Path, few: int, many: int) -> None:
    """As many for sixty-four as for four."""
    counts = []
    for leads in (few, many):
        store = recorded(tmp_path / f"recorded{leads}", leads)
        with empty_like(store, tmp_path / f"other{leads}") as other:
            seen: list[str] = []
            write_together(other, store.waves[1])
            writer = other._writer
            assert writer is not None
            writer._connection.set_exec_trace(lambda _, sql, __, seen=seen: seen.append(sql) is None)  # type: ignore[misc]
            write_together(other, store.waves[2])
            writer._connection.set_exec_trace(None)
            counts.append(len([sql for sql in seen if "settled" not in sql]))

    assert counts[0] == counts[1]
