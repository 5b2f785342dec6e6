"""Thousands of random changes of one thing in a ledger, and one in every column: each of them must be found."""

import random
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Self

import apsw
import pytest

from batonpass.audit.verification import chain_check, verify
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import BatonpassError, DerivedStateError
from batonpass.ledger.seals import Sealing
from batonpass.signing.ed25519 import is_signed
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import a_scribe, a_small_tree
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.full_ledger import RECEIPTS, TABLES, record_everything
from tests.integration.sqlite.tails import settle
from tests.seeds import SEEDS

# Two thousand in `make test`, ten thousand in `make test-seeds`. The first two thousand are found by the same 29
# `raise` statements as all ten thousand, and the first thousand by 27 of them.
MUTATIONS = 100 * SEEDS
PARTS = 16
SEEDS_OF_A_PART = 10_000


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a sealed ledger with everything in it that a ledger can hold, and its last seal."""
    path = tmp_path_factory.mktemp("mutations") / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    record_everything(scribe)
    settle(store)
    a_small_tree(scribe, calls=2)
    seal = Sealing(store, scribe.identity).seal()
    store.close()
    assert RECEIPTS <= seal.size
    return path, seal.note


class Vandal:
    """Changes one thing in a copy of a ledger."""

    def __init__(self, path: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("ignore_check_constraints", "on")
        self._connection.pragma("synchronous", "off")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def strike(self) -> str:
        """Change one thing that can be changed, and say what."""
        while True:
            act = self._random.choices(
                (self._flip, self._remove, self._swap, self._duplicate, self._cut, self._plant),
                (80, 8, 6, 4, 2, 4),
            )[0]
            try:
                if (done := act()) is not None:
                    return done
            except apsw.ConstraintError:
                continue

    def _count(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {table}").get)

    def _key(self, table: str) -> tuple[str, object]:
        key = TABLES[table][0]
        number = self._random.randrange(self._count(table))
        return key, self._connection.execute(f"SELECT {key} FROM {table} LIMIT 1 OFFSET {number}").get

    def _table(self) -> str:
        return self._random.choice(("receipts", "receipts", "contents", *TABLES))

    def _flip(self) -> str | None:
        table = self._table()
        _, identifier = self._key(table)
        return self._flip_at(table, self._random.choice(TABLES[table]), identifier)

    def flip_in(self, table: str, column: str) -> str:
        """Change a value in this column, and say which, or that it has none that can be changed."""
        key = TABLES[table][0]
        rows = f"SELECT {key} FROM {table} WHERE length({column}) > 0"
        identifiers = [identifier for (identifier,) in self._connection.execute(rows)]
        self._random.shuffle(identifiers)
        for identifier in identifiers:
            with suppress(apsw.ConstraintError):
                if (done := self._flip_at(table, column, identifier)) is not None:
                    return done
        return f"nothing: no {table}.{column} can be changed"

    def _flip_at(self, table: str, column: str, identifier: object) -> str | None:
        where = f"WHERE {TABLES[table][0]} = ?"
        value = self._connection.execute(f"SELECT {column} FROM {table} {where}", (identifier,)).get
        if value is None or value in (b"", ""):
            return None
        changed = self._flipped(value)
        if changed == value:
            return None
        self._connection.execute(f"UPDATE {table} SET {column} = ? {where}", (changed, identifier))
        return f"{table}.{column} of {identifier}: {value!r:.60} → {changed!r:.60}"

    def _flipped(self, value: int | str | bytes) -> int | str | bytes:
        if isinstance(value, int):
            return value ^ (1 << self._random.randrange(40))
        if isinstance(value, str):
            place = self._random.randrange(len(value))
            return value[:place] + chr(ord(value[place]) ^ (1 << self._random.randrange(7))) + value[place + 1 :]
        place = self._random.randrange(len(value))
        return value[:place] + bytes([value[place] ^ (1 << self._random.randrange(8))]) + value[place + 1 :]

    def _remove(self) -> str | None:
        table = self._table()
        key, identifier = self._key(table)
        if table == "seals" and identifier == self._connection.execute("SELECT max(size) FROM seals").get:
            return None  # the newest seal: nothing commits to it yet
        if table == "contents" and self._is_erased(identifier):
            return None  # its receipt says all that the row says; a ledger that was imported has no such row at all
        self._connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (identifier,))
        return f"removed {identifier} from {table}"

    def _is_erased(self, content: object) -> bool:
        return bool(self._connection.execute("SELECT place = 'erased' FROM contents WHERE id = ?", (content,)).get)

    def _swap(self) -> str | None:
        first, second = (self._key("receipts")[1] for _ in range(2))
        if first == second:
            return None
        with self._connection:
            for old, new in ((first, -1), (second, first), (-1, second)):
                self._connection.execute("UPDATE receipts SET position = ? WHERE position = ?", (new, old))
        return f"swapped positions {first} and {second}"

    def _duplicate(self) -> str | None:
        position = self._key("receipts")[1]
        last = self._count("receipts")
        columns = "kind, payload, relay_signature, cosignature"
        self._connection.execute(
            f"INSERT INTO receipts (position, id, stream, seq, {columns})"
            f" SELECT ?, id || 'x', stream, seq + 1000, {columns} FROM receipts WHERE position = ?",
            (last + 1, position),
        )
        return f"doubled {position}"

    def _plant(self) -> str | None:
        content = self._key("contents")[1]
        path = self._connection.execute("SELECT path FROM touches WHERE content = ?", self._key("touches")[1:]).get
        self._connection.execute(
            "INSERT INTO touches (content, receipt, path) SELECT id, receipt, ? FROM contents WHERE id = ?",
            (path, content),
        )
        return f"planted {content} under {path}"

    def _cut(self) -> str | None:
        first = self._random.randrange(2, self._count("receipts"))
        self._connection.execute("DELETE FROM receipts WHERE position >= ?", (first,))
        return f"cut the tail from position {first}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_mutation_is_found(
    ledger: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """Whatever single thing changes in a ledger, verification names it and raises nothing but our own errors."""
    judge = Judge(ledger[0], tmp_path, monkeypatch)
    seeds = range(part * SEEDS_OF_A_PART, part * SEEDS_OF_A_PART + MUTATIONS // PARTS)

    assert [] == [missed for seed in seeds if (missed := judge.missed(seed, Vandal.strike))]


@pytest.mark.slow
def test_a_change_in_every_column_is_found(
    ledger: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chance leaves out a column that hardly any row fills; here each is changed."""
    judge = Judge(ledger[0], tmp_path, monkeypatch)
    strikes = [partial(Vandal.flip_in, table=table, column=one) for table, columns in TABLES.items() for one in columns]

    assert [] == [missed for seed, strike in enumerate(strikes) if (missed := judge.missed(seed, strike))]


class Judge:
    """Verifies copies of a ledger, in each of which one thing was changed."""

    def __init__(self, path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._copy = directory / "copy.db"
        self._known: dict[tuple[bytes, bytes, bytes], bool] = {}
        # The same untouched receipts are read and checked thousands of times; remembering the answers loses nothing.
        decode = cache(decode_receipt)
        for reader in (chain_check, verify):
            monkeypatch.setattr(reader, "decode_receipt", decode)
        shutil.copytree(path.with_name("ledger.db.batonpass"), directory / "copy.db.batonpass")

    def missed(self, seed: int, strike: Callable[[Vandal], str]) -> str | None:
        """Return what was changed and not found; None if it was found."""
        for leftover in self._copy.parent.glob("copy.db-*"):
            leftover.unlink()
        shutil.copyfile(self._path, self._copy)
        with Vandal(self._copy, seed) as vandal:
            what = strike(vandal)
        try:
            with closing(SqliteStore(self._copy)) as store:
                verify_ledger(store, check=self._check)
        except BatonpassError:
            return None
        return f"seed {seed}: {what}"

    def _check(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        key = (public_key, message, signature)
        if key not in self._known:
            self._known[key] = is_signed(public_key, message, signature)
        return self._known[key]


def test_a_clean_copy_verifies(ledger: tuple[Path, str]) -> None:
    """The ledger that the vandal starts from is whole, and its last seal holds."""
    path, note = ledger
    store = SqliteStore(path)
    evidence = verify_ledger(store, seals=[note])
    store.close()

    assert RECEIPTS <= evidence.receipts
    assert (2, 2) == (evidence.erased, evidence.relays)
    assert 3 == evidence.seals


# A content that is found under a path, one that was until it was erased, and the arguments of a call that name a path.
TOUCHED = "SELECT min(content) FROM touches WHERE path = 'src/0.py'"
ERASED = (
    "SELECT contents.id FROM contents JOIN receipts ON receipts.position = contents.receipt"
    " WHERE contents.place = 'erased' AND receipts.kind = 'tool.completed'"
)
ARGUMENTS = 'SELECT min(id) FROM contents WHERE CAST(body AS TEXT) = \'{"path":"src/editor0.py"}\''


@pytest.mark.parametrize(
    ("which", "act", "says"),
    [
        (
            TOUCHED,
            "UPDATE touches SET path = 'src/1.py' WHERE content = ?",
            "is found under 'src/1.py' and is a change",
        ),
        (TOUCHED, "UPDATE touches SET content = substr(content, 1, 33) || '!' WHERE content = ?", "under no path"),
        (TOUCHED, "UPDATE touches SET receipt = receipt - 1 WHERE content = ?", "which is not its receipt"),
        (TOUCHED, "UPDATE touches SET receipt = -1 WHERE content = ?", "receipt"),
        (TOUCHED, "DELETE FROM touches WHERE content = ?", "is a change and is found under no path"),
        (
            ERASED,
            "INSERT INTO touches SELECT id, receipt, 'src/secret.py' FROM contents WHERE id = ?",
            "is not a change",
        ),
        (
            ARGUMENTS,
            "INSERT INTO touches SELECT id, receipt, 'src/editor0.py' FROM contents WHERE id = ?",
            "is not a change",
        ),
        (
            "SELECT 'content_' || '00000000000000000000000000'",
            "INSERT INTO touches VALUES (?, 1, 'x')",
            "is not a change",
        ),
    ],
    ids=[
        "another path",
        "another content",
        "another receipt",
        "a receipt that is not there",
        "no row",
        "a row of an erased change",
        "a row of arguments that name the path",
        "a row of nothing",
    ],
)
def test_a_path_that_is_not_the_contents_own_is_named(
    ledger: tuple[Path, str], tmp_path: Path, which: str, act: str, says: str
) -> None:
    """Who changed what is answered from rows beside the receipts: whatever somebody does to them is found."""
    path, _ = ledger
    copy = tmp_path / "copy.db"
    shutil.copytree(path.with_name("ledger.db.batonpass"), tmp_path / "copy.db.batonpass")
    shutil.copyfile(path, copy)
    with closing(apsw.Connection(str(copy))) as connection:
        content = connection.execute(which).get
        connection.execute(act, (content,))
        changes = connection.changes()
    store = SqliteStore(copy)
    with closing(store), pytest.raises(DerivedStateError, match=says) as found:
        verify_ledger(store)

    assert (1, True) == (changes, content in str(found.value))
