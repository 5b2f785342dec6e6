"""Seals: one that is kept here, or was kept elsewhere, must be of this ledger, by its relays, and of these receipts."""

from collections.abc import Callable
from hashlib import sha256

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SealError
from batonpass.ledger.merkle import Frontier, leaf_hash
from batonpass.ledger.note import Checkpoint, sign_checkpoint
from batonpass.ledger.seals import Sealing, origin_of
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.seal import Seal
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import RelayIdentity
from batonpass.testing.builders import a_scribe
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import DIGEST

STRANGER = Ed25519Signer(b"x" * 32)


def sealed(forger: Forger) -> Seal:
    return Sealing(forger.store, forger.scribe.identity).seal()


def a_note(forger: Forger, *, size: int = 8, root: bytes | None = None, by: Signer | None = None) -> str:
    """Return a seal as somebody may have made it."""
    assert forger.tables.info is not None
    origin = origin_of(forger.tables.info.id)
    signer = by or forger.scribe.identity.signer
    right = bytes.fromhex(sealed(forger).root) if root is None else root
    return sign_checkpoint(Checkpoint(origin, size, right), signer.sign, origin, bytes.fromhex(signer.public_key))


def spoil(forger: Forger, **columns: object) -> None:
    """Seal, and change columns of the row that is kept."""
    size = sealed(forger).size
    forger.tables.seals[size] = replace(forger.tables.seals[size], **columns)


def remove_the_middle_one(forger: Forger) -> None:
    for _ in range(3):
        sealed(forger)
        forger.scribe.start()
    del forger.tables.seals[9]


KEPT: dict[str, tuple[Callable[[Forger], object], str | None, str | None]] = {
    "another root in the row": (lambda f: spoil(f, root=DIGEST), "seal 8", "root"),
    "another size in the row": (lambda f: spoil(f, size=64, frontier=bytes(32)), "seal 64", "root"),
    "another frontier": (lambda f: spoil(f, frontier=bytes(32)), "seal 8", "frontier"),
    "a note that cannot be read": (lambda f: spoil(f, note="rubbish"), None, "note"),
    "a note by a stranger": (lambda f: spoil(f, note=a_note(f, by=STRANGER)), "seal 8", "signature"),
    "a note by the root key": (lambda f: spoil(f, note=a_note(f, by=f.scribe.root)), "seal 8", "signature"),
    "a note over other receipts": (
        lambda f: spoil(f, note=a_note(f, root=bytes.fromhex(DIGEST)), root=DIGEST),
        "seal 8",
        "root",
    ),
    "one that follows another than it says": (lambda f: spoil(f, previous=3), "seal 8", "previous"),
    "one that vanished between two": (remove_the_middle_one, "seal 10", "previous"),
}


@pytest.mark.parametrize(("act", "stream", "field"), KEPT.values(), ids=KEPT.keys())
def test_a_kept_seal_that_is_not_right_is_found(
    act: Callable[[Forger], object],
    stream: str | None,
    field: str | None,
) -> None:
    """A seal's row says nothing that its note and the receipts do not say."""
    forger = Forger()
    act(forger)

    with pytest.raises(SealError) as found:
        verify_ledger(forger.store)

    assert (stream, field) == (found.value.stream, found.value.field)


GIVEN: dict[str, tuple[Callable[[Forger], str], str | None, str | None]] = {
    "one that cannot be read": (lambda _: "rubbish\n", None, "note"),
    "one of another ledger": (lambda _: a_note(Forger()), "seal 8", "origin"),
    "one by a stranger": (lambda f: a_note(f, by=STRANGER), "seal 8", "signature"),
    "one over other receipts": (lambda f: a_note(f, root=bytes.fromhex(DIGEST)), "seal 8", "root"),
    "one over more receipts": (lambda f: a_note(f, size=11), "seal 11", "size"),
    "one over nothing": (lambda f: a_note(f, size=0, root=Frontier.empty().root()), "seal 0", "size"),
}


@pytest.mark.parametrize(("make", "stream", "field"), GIVEN.values(), ids=GIVEN.keys())
def test_a_given_seal_that_does_not_agree_is_found(
    make: Callable[[Forger], str],
    stream: str | None,
    field: str | None,
) -> None:
    """A seal from elsewhere must be this ledger's and must be of what is here."""
    forger = Forger()
    note = make(forger)

    with pytest.raises(SealError) as found:
        verify_ledger(forger.store, seals=[note])

    assert (stream, field) == (found.value.stream, found.value.field)


def test_a_seal_from_elsewhere_is_counted() -> None:
    """Seals that agree are evidence, those kept here and those given."""
    forger = Forger()
    note = sealed(forger).note
    forger.scribe.start()

    assert 2 == verify_ledger(forger.store, seals=[note]).seals


def test_a_seal_of_a_retired_key_is_good_where_it_was_made() -> None:
    """A seal that was made before its key was rotated away stays good."""
    forger = Forger()
    note = sealed(forger).note
    fresh = Ed25519Signer.generate()
    forger.scribe.enrolment.rotate(fresh.public_key, root=forger.scribe.root)
    renewed = RelayIdentity(forger.scribe.identity.id, fresh)
    a_scribe(forger.store, identity=renewed, root=forger.scribe.root).start()
    Sealing(forger.store, renewed).seal()

    assert 3 == verify_ledger(forger.store, seals=[note]).seals


def test_a_whole_tree_that_was_cut_out_is_found_by_a_seal() -> None:
    """Remove the newest tree with all its rows: only a seal that was kept elsewhere knows that it existed."""
    forger = Forger()
    before = verify_ledger(forger.store).receipts
    lead = forger.scribe.start()
    note = sealed(forger).note
    forger.tables.seals.clear()
    forger.remove(lead.run.id, 1, renumber=True)
    for table in (forger.tables.streams, forger.tables.runs):
        table.pop(lead.run.id)  # type: ignore[call-overload]
    for content in [kept.id for kept in forger.tables.contents.values() if kept.body == b"Fix invoice rounding"][1:]:
        forger.tables.contents.pop(content)
        forger.tables.stated.pop(content)

    assert before == verify_ledger(forger.store).receipts
    with pytest.raises(SealError, match="at least 1 were deleted"):
        verify_ledger(forger.store, seals=[note])


def test_the_root_is_over_the_digests_in_order() -> None:
    """What a seal commits to is the tree over the receipts' digests by position."""
    forger = Forger()
    frontier = Frontier.empty()
    for name, seq in (("relay", 1), ("lead", 1), ("lead", 2), *(("child", seq) for seq in (1, 2, 3, 4)), ("lead", 3)):
        frontier.append(leaf_hash(bytes.fromhex(_digest(forger, name, seq))))

    assert frontier.root().hex() == sealed(forger).root


def _digest(forger: Forger, name: str, seq: int) -> str:
    return sha256(forger.row(name, seq).payload).hexdigest()
