"""Going on from a seal: what changed since is verified in full, and nothing that was sealed can be changed unseen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SealError, VerificationError
from batonpass.ledger.note import parse_note, sign_checkpoint
from batonpass.ledger.seals import Sealing
from batonpass.model.base.ids import StreamId
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.seal import Seal
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe, a_scribe, a_small_tree
from tests.integration.full_ledger import record_everything
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

Act = Callable[["Sealed"], object]
Execute = Callable[..., list[tuple[Any, ...]]]


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """A ledger with quiet trees, one tree that went on after a seal, and a way to edit its tables."""

    store: LedgerStore
    scribe: Scribe
    seal: Seal
    quiet: StreamId  # of a run in a tree that is over, and sealed
    going_on: StreamId  # of a run that began before the seal and ended after it
    new: StreamId
    execute: Execute

    @property
    def on_sqlite(self) -> bool:
        """Return whether it is in a file."""
        return self.store.url.startswith("sqlite")

    @property
    def number(self) -> str:
        """Return the column by which contents name their receipt."""
        return "position" if self.on_sqlite else "number"

    def flip(self, stream: StreamId, seq: int, column: str = "payload") -> None:
        """Change one bit of a receipt."""
        found = "FROM receipts WHERE stream = (SELECT number FROM streams WHERE id = ?) AND seq = ?"
        ((before,),) = self.execute(f"SELECT {column} {found}", stream, seq)
        changed = bytearray(before)
        changed[len(changed) // 2] ^= 1
        self.execute(
            f"UPDATE receipts SET {column} = ? {found.removeprefix('FROM receipts ')}", bytes(changed), stream, seq
        )

    def rewrite(self, stream: StreamId) -> None:
        """Put other words under the first receipt of a run that has any."""
        with self.store.view() as view:
            first = next(
                one for one in map(view.get_content, view.find_content_ids()) if self._is_of(view, one, stream)
            )
        self.execute("UPDATE contents SET body = ? WHERE id = ?", b"other words", first.id)

    def _is_of(self, view: Any, content: Any, stream: StreamId) -> bool:  # noqa: ANN401 - a view, a content
        return bool(view.get_receipt(content.receipt).stream == stream)

    def verify(self, since: str | None = None) -> Any:  # noqa: ANN401 - the evidence
        """Verify from the seal on."""
        return verify_ledger(self.store, since=since or self.seal.note)


def sealed(store: LedgerStore, execute: Execute) -> Sealed:
    """Record, seal, and record on."""
    scribe = a_scribe(store)
    record_everything(scribe)
    quiet = a_small_tree(scribe)
    lead = scribe.start()
    child = scribe.delegate(lead)
    scribe.call(child)
    store.sequence()
    seal = Sealing(store, scribe.identity).seal()
    scribe.call(child)
    scribe.recording.close(child, report="done")
    new = a_small_tree(scribe)
    store.sequence()
    return Sealed(
        store=store,
        scribe=scribe,
        seal=seal,
        quiet=StreamId(quiet.run.id),
        going_on=StreamId(child.run.id),
        new=StreamId(new.run.id),
        execute=execute,
    )


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Sealed]:
    """Return a ledger in a file."""
    store = open_store(f"sqlite:///{tmp_path / 'ledger.db'}")

    def execute(statement: str, *values: object) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(tmp_path / "ledger.db"))
        try:
            return list(connection.execute(statement, values))
        finally:
            connection.close()

    yield sealed(store, execute)
    store.close()


@pytest.fixture
def on_postgres(postgres: Server, postgres_url: str) -> Iterator[Sealed]:
    """Return a ledger on a server."""
    store = open_store(postgres_url)

    def execute(statement: str, *values: object) -> list[tuple[Any, ...]]:
        return postgres.execute(statement.replace("?", "%s"), *values, database=database_of(postgres_url))

    yield sealed(store, execute)
    store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest) -> Sealed:
    """Return the same ledger in each store."""
    found: Sealed = request.getfixturevalue(f"on_{request.param}")
    return found


_OF: Final = "stream = (SELECT number FROM streams WHERE id = ?)"
EDITS: Final[dict[str, Act]] = {
    "a bit of a sealed receipt in a quiet tree": lambda place: place.flip(place.quiet, 1),
    "a bit of a sealed receipt in a tree that goes on": lambda place: place.flip(place.going_on, 2),
    "a bit of a receipt after the seal": lambda place: place.flip(place.new, 2),
    "a signature after the seal": lambda place: place.flip(place.new, 2, "relay_signature"),
    "a run's signature after the seal": lambda place: place.flip(place.new, 1, "cosignature"),
    "sealed words of a quiet tree": lambda place: place.rewrite(place.quiet),
    "words after the seal": lambda place: place.rewrite(place.new),
    "sealed words that are gone": lambda place: place.execute(
        f"DELETE FROM contents WHERE receipt IN (SELECT {place.number} FROM receipts WHERE {_OF})", place.quiet
    ),
    "a sealed receipt that is gone": lambda place: place.execute(
        f"DELETE FROM receipts WHERE {_OF} AND seq = 2", place.quiet
    ),
    "the column of a sealed receipt": lambda place: place.execute(
        f"UPDATE receipts SET kind = 'run.noted' WHERE {_OF} AND seq = 2", place.quiet
    ),
    "the stream of a sealed receipt": lambda place: place.execute(
        f"UPDATE receipts SET stream = (SELECT number FROM streams WHERE id = ?), seq = 900 WHERE {_OF} AND seq = 2",
        place.going_on,
        place.quiet,
    ),
    "a forged receipt in a quiet tree": lambda place: forge(place),  # noqa: PLW0108 - made below
    "the row of a run that went on": lambda place: place.execute(
        "UPDATE runs SET principal = 'user:mallory' WHERE id = ?", place.going_on
    ),
    "the row of a stream that went on": lambda place: place.execute(
        "UPDATE streams SET epoch = 7 WHERE id = ?", place.going_on
    ),
    "the row of a handoff after the seal": lambda place: place.execute(
        "UPDATE handoffs SET state = 'failed' WHERE parent = ?", place.new
    ),
    "the key of a relay": lambda place: place.execute("UPDATE keys SET status = 'revoked' WHERE role = 'relay'"),
    "the kept seal": lambda place: place.execute("UPDATE seals SET root = ?", "ab" * 32),
}


def forge(place: Sealed) -> None:
    """Write a receipt with old bytes behind all others."""
    place.execute(
        "INSERT INTO receipts (id, stream, seq, kind, payload, relay_signature, cosignature) "
        "SELECT substr(id, 1, 33) || 'z', stream, seq + 90, kind, payload, relay_signature, cosignature FROM receipts "
        f"WHERE {_OF} AND seq = 2",
        place.quiet,
    )
    if not place.on_sqlite:
        place.execute(
            "INSERT INTO positions (position, receipt) "
            "SELECT (SELECT max(position) + 1 FROM positions), (SELECT max(number) FROM receipts)"
        )


def test_what_changed_since_is_verified_in_full(place: Sealed) -> None:
    """All receipts count, those of quiet trees are passed over, and fewer signatures are checked."""
    whole, since = verify_ledger(place.store), place.verify()

    assert (whole.receipts, whole.contents, whole.erased) == (since.receipts, since.contents, since.erased)
    assert (0, True) == (whole.sealed, since.sealed > since.receipts // 2)
    assert since.signatures < whole.signatures // 2


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_found(place: Sealed, edit: str) -> None:
    """Before the seal and after it, in a quiet tree and in one that goes on."""
    EDITS[edit](place)

    with pytest.raises(VerificationError):
        place.verify()


def test_a_truncated_ledger_is_found(on_sqlite: Sealed) -> None:
    """With the last seal, it does not matter that what is left hangs together."""
    last = Sealing(on_sqlite.store, on_sqlite.scribe.identity).seal()
    on_sqlite.execute("DELETE FROM receipts WHERE position > ?", on_sqlite.seal.size)
    on_sqlite.execute("DELETE FROM seals WHERE size > ?", on_sqlite.seal.size)

    with pytest.raises(SealError, match="were deleted"):
        on_sqlite.verify(last.note)


def test_reordered_receipts_are_found(on_sqlite: Sealed) -> None:
    """Two quiet trees that change places are not what was sealed."""
    ((first, second),) = on_sqlite.execute(
        "SELECT min(position), min(position) + 1 FROM receipts WHERE kind = 'run.started'"
    )
    on_sqlite.execute("UPDATE receipts SET position = -1 WHERE position = ?", first)
    on_sqlite.execute("UPDATE receipts SET position = ? WHERE position = ?", first, second)
    on_sqlite.execute("UPDATE receipts SET position = ? WHERE position = -1", second)

    with pytest.raises(VerificationError):
        on_sqlite.verify()


def test_the_seal_of_another_ledger_is_refused(place: Sealed) -> None:
    """However well it is signed."""
    other = a_scribe(MemoryStore())
    a_small_tree(other)

    with pytest.raises(SealError, match="not of"):
        place.verify(Sealing(other.store, other.identity).seal().note)


def test_a_seal_that_no_relay_signed_is_refused(place: Sealed) -> None:
    """Whoever rewrites history can compute its root, and not sign it."""
    note = parse_note(place.seal.note)
    stranger = a_scribe(MemoryStore()).identity
    origin, key = note.checkpoint.origin, bytes.fromhex(stranger.signer.public_key)
    forged = sign_checkpoint(note.checkpoint, stranger.signer.sign, origin, key)

    with pytest.raises(SealError, match="no relay that was enrolled then has signed it"):
        place.verify(forged)


def test_a_seal_whose_root_was_changed_is_refused(place: Sealed) -> None:
    """Its signature is over the root."""
    lines = place.seal.note.split("\n")
    lines[2] = ("B" if lines[2][0] != "B" else "C") + lines[2][1:]

    with pytest.raises(SealError):
        place.verify("\n".join(lines))


def test_what_a_seal_does_not_tell(on_sqlite: Sealed) -> None:
    """Signatures and rows of quiet trees are left to a verification of everything, which finds them."""
    on_sqlite.flip(on_sqlite.quiet, 2, "relay_signature")
    on_sqlite.verify()

    with pytest.raises(VerificationError):
        verify_ledger(on_sqlite.store)


def test_a_tree_that_goes_on_from_a_quiet_one_is_held_against_it(tmp_path: Path) -> None:
    """What is resumed after the seal is compared with the tree that it comes from, so that one is read as well."""
    with Relay.open(f"sqlite:///{tmp_path / 'ledger.db'}") as relay:
        with relay.start("Every quarter", by=ANA) as first:
            first.record(Decision("round half-even", why="the tax office says so"))
        with relay.start("Something else", by=ANA):
            pass
        seal = relay.admin.seal()
        with relay.start("Again", by=ANA, continues=first.id):
            pass
        evidence = relay.verify(since=seal.note)

    assert (2, True) == (evidence.runs, evidence.sealed > 0)
