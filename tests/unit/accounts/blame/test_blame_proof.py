"""Whether the receipts behind an answer hold: what was changed under it is found, without reading the rest."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from batonpass.accounts.blame.blame_proof import Witness
from batonpass.accounts.blame.blame_values import BlameProof
from batonpass.store.port import ReceiptQuery
from tests.unit.accounts.shop import ANA, BEFORE, Shop, write_file

Damage = Callable[[apsw.Connection], object]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop whose ledger is a file, in which an editor has changed a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BEFORE, encoding="utf-8")
    shop = Shop(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    return shop


def damaged(shop: Shop, damage: Damage) -> BlameProof:
    shop.relay.close()
    connection = apsw.Connection(str(shop.folder / "ledger.db"))
    damage(connection)
    connection.close()
    return Shop(shop.folder, f"sqlite:///{shop.folder / 'ledger.db'}").maker().proof


def test_what_is_as_it_was_signed_holds(shop: Shop) -> None:
    """The change, its request, both runs' first receipts and the offer."""
    assert BlameProof(receipts=5) == shop.maker().proof


def set_body(connection: apsw.Connection, kind: str, old: bytes, new: bytes) -> None:
    """Change the words of a receipt of a kind."""
    connection.execute(
        "UPDATE contents SET body = CAST(replace(body, ?, ?) AS BLOB)"
        " WHERE receipt IN (SELECT position FROM receipts WHERE kind = ?)"
        " AND instr(body, ?)",
        (old, new, kind, old),
    )


DAMAGES = {
    "the task was changed": (
        lambda base: set_body(base, "handoff.initiated", b"Shout", b"Shoot"),
        "verify.content",
        "the task is not what the receipt committed to",
    ),
    "the human's words were changed": (
        lambda base: set_body(base, "run.started", b"Fix it", b"Nix it"),
        "verify.content",
        "the intent is not what the receipt committed to",
    ),
    "the request is gone": (
        lambda base: base.execute("DELETE FROM receipts WHERE kind = 'tool.requested'"),
        "verify.missing",
        "no receipt",
    ),
    "a signature is another": (
        lambda base: base.execute(
            "UPDATE receipts SET relay_signature = zeroblob(64) WHERE kind = 'tool.completed'",
        ),
        "verify.signature",
        "a signature does not match the signed bytes",
    ),
    "the run's signature is another": (
        lambda base: base.execute("UPDATE receipts SET cosignature = zeroblob(64) WHERE kind = 'tool.completed'"),
        "verify.signature",
        "a signature does not match the signed bytes",
    ),
    "the run's signature is gone": (
        lambda base: base.execute("UPDATE receipts SET cosignature = NULL WHERE kind = 'tool.completed'"),
        "verify.signature",
        "the second signature is not the one that the receipt names",
    ),
    "the kind beside the bytes is another": (
        lambda base: base.execute("UPDATE receipts SET kind = 'tool.failed' WHERE kind = 'tool.completed'"),
        "verify.edited",
        "the columns of a receipt say something else than its signed bytes",
    ),
    "the words of the task are gone": (
        lambda base: base.execute(
            "DELETE FROM contents WHERE receipt IN (SELECT position FROM receipts WHERE kind = 'handoff.initiated')"
        ),
        "verify.content",
        "is gone, and was not erased",
    ),
    "the relay's key is another's": (
        lambda base: base.execute("UPDATE ledger SET root_key = ?", ("ab" * 32,)),
        "verify.unknown_key",
        "was never enrolled for",
    ),
    "the head of the stream is another": (
        lambda base: base.execute("UPDATE streams SET head = ?, seq = 3 WHERE seq = 4", ("0" * 64,)),
        "verify.chain",
        "it is not the head of its stream",
    ),
    "the relay was never let in": (
        lambda base: base.execute("UPDATE receipts SET cosignature = zeroblob(64) WHERE kind = 'relay.enrolled'"),
        "verify.unknown_key",
        "was never enrolled for",
    ),
}


@pytest.mark.parametrize(("damage", "code", "problem"), DAMAGES.values(), ids=DAMAGES)
def test_what_was_changed_is_found(shop: Shop, damage: Damage, code: str, problem: str) -> None:
    """It names the first thing that is wrong."""
    proof = damaged(shop, damage)

    assert (code, True, False) == (proof.code, problem in (proof.problem or ""), proof.holds)


def test_a_neighbour_that_was_changed_is_found(shop: Shop) -> None:
    """What stands before a receipt in its stream is what it hangs from."""
    with shop.viewed() as view:
        completed = next(view.find_receipts(ReceiptQuery(kind="tool.completed")))
    shop.relay.close()
    connection = apsw.Connection(str(shop.folder / "ledger.db"))
    connection.execute("UPDATE receipts SET payload = CAST(payload || ' ' AS BLOB) WHERE kind = 'tool.requested'")
    connection.close()
    with Shop(shop.folder, f"sqlite:///{shop.folder / 'ledger.db'}").viewed() as view:
        proof = Witness(view).prove([completed])

    assert ("verify.chain", False) == (proof.code, proof.holds)


def test_a_key_that_was_replaced_stays_good_for_what_it_signed(shop: Shop) -> None:
    """Rotation ends a key from there on, and not before."""
    shop.relay.admin.rotate()

    assert BlameProof(receipts=5) == shop.maker().proof


def test_a_run_that_went_on_under_another_key_is_signed_by_that(shop: Shop) -> None:
    """After a process was lost, the later key counts for what came later."""
    lead = shop.relay.start("Go on", by=ANA)
    again = shop.relay.resume(lead.id)
    again.call(write_file, "b.py", "another line that says much\n")

    assert shop.maker("b.py", 1).proof.holds


def test_a_key_that_had_ended_proves_nothing(shop: Shop) -> None:
    """What is numbered after a key's end, that key cannot have recorded."""
    shop.relay.admin.rotate()
    with shop.viewed() as view:
        completed = next(view.find_receipts(ReceiptQuery(kind="tool.completed")))
        late = replace(completed, position=view.last_position() + 1)
        proof = Witness(view).prove([late])

    assert "verify.revoked_key" == proof.code


def test_each_receipt_is_checked_once(shop: Shop) -> None:
    """Many lines may rest on the same few receipts."""
    with shop.viewed() as view:
        witness = Witness(view)
        completed = next(view.find_receipts(ReceiptQuery(kind="tool.completed")))

        assert [BlameProof(receipts=1), BlameProof(receipts=2)] == [
            witness.prove([completed] * count) for count in (1, 2)
        ]
