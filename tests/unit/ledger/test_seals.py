"""Seals: the tree is grown from the last one, and is the tree that would be grown from nothing."""

from hashlib import sha256

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SealError, UnknownRelayError
from batonpass.ledger.merkle import Frontier, leaf_hash
from batonpass.ledger.note import parse_note
from batonpass.ledger.seals import Sealing, origin_of
from batonpass.model.ledger.seal import Seal
from batonpass.signing.ed25519 import Ed25519Signer, is_signed
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.builders import Scribe, a_scribe, a_small_tree
from tests.unit.ledger.stores import RacingStore


def seal(scribe: Scribe) -> Seal:
    return Sealing(scribe.store, scribe.identity).seal()


def kept_in(store: LedgerStore) -> list[Seal]:
    with store.view() as view:
        return list(view.find_seals())


def tree_of(store: LedgerStore, size: int) -> Frontier:
    """Return the tree over the first receipts, grown from nothing."""
    frontier = Frontier.empty()
    with store.view() as view:
        for stored in view.find_receipts(ReceiptQuery(first=1, last=size)):
            frontier.append(leaf_hash(sha256(stored.payload).digest()))
    return frontier


def test_a_seal_covers_everything() -> None:
    """Its size is the number of receipts, and its root that of the tree over them."""
    scribe = a_scribe(store := MemoryStore())
    a_small_tree(scribe)
    sealed = seal(scribe)
    tree = tree_of(store, 17)

    assert (17, 0, tree.root().hex(), tree.to_bytes()) == (
        sealed.size,
        sealed.previous,
        sealed.root,
        sealed.frontier,
    )
    assert [sealed] == kept_in(store)
    assert 1 == verify_ledger(store).seals


def test_growing_a_seal_is_the_same_as_starting_again() -> None:
    """Seals at every size, each built on the one before, are those that a fresh tree has."""
    scribe = a_scribe(store := MemoryStore())
    lead = scribe.start()
    for _ in range(17):
        seal(scribe)
        scribe.recording.request(lead, "write_file", "{}")
    seals = kept_in(store)

    assert [tree_of(store, sealed.size).to_bytes() for sealed in seals] == [sealed.frontier for sealed in seals]
    assert [tree_of(store, sealed.size).root().hex() for sealed in seals] == [sealed.root for sealed in seals]
    assert [0, *(sealed.size for sealed in seals[:-1])] == [sealed.previous for sealed in seals]
    assert 17 == verify_ledger(store).seals


def test_the_past_is_not_read_again() -> None:
    """The second seal reads only what came after the first."""
    scribe = a_scribe(store := MemoryStore())
    a_small_tree(scribe)
    seal(scribe)
    store._tables.receipts[3] = store._tables.receipts[4]
    scribe.start()

    assert 18 == seal(scribe).size


def test_a_ledger_that_did_not_grow_keeps_its_seal() -> None:
    """Sealing twice gives the same seal, and keeps one."""
    scribe = a_scribe(store := MemoryStore())
    first, second = seal(scribe), seal(scribe)

    assert first == second
    assert [first] == kept_in(store)


def test_a_seal_is_a_note_of_this_ledger_by_this_relay() -> None:
    """The note says which ledger, how much and which root, signed by the relay's key."""
    scribe = a_scribe(store := MemoryStore())
    sealed = seal(scribe)
    with store.view() as view:
        origin = origin_of(view.info().id)
    note = parse_note(sealed.note)
    public_key = bytes.fromhex(scribe.identity.signer.public_key)
    (signature,) = note.find_signatures(origin, public_key)

    assert (origin, 1, sealed.root) == (note.checkpoint.origin, note.checkpoint.size, note.checkpoint.root.hex())
    assert is_signed(public_key, note.signed_bytes, signature.signature)


def test_two_who_seal_at_once_leave_a_whole_row_of_seals() -> None:
    """Another process records and seals between our look and our seal: no two seals follow the same one."""
    store = RacingStore()
    scribe = a_scribe(store)
    lead = scribe.start()
    seal(scribe)
    scribe.call(lead)

    def overtake() -> None:
        scribe.call(lead)
        seal(scribe)

    store.first.append(overtake)
    last = seal(scribe)

    assert [(2, 0), (6, 2)] == [(kept.size, kept.previous) for kept in kept_in(store)]
    assert last == kept_in(store)[-1]
    assert 2 == verify_ledger(store).seals


def test_a_key_that_may_not_record_may_not_seal() -> None:
    """A process whose key was rotated away is refused: a seal of that key would make the ledger fail verification."""
    scribe = a_scribe(store := MemoryStore())
    scribe.enrolment.rotate(Ed25519Signer.generate().public_key, root=scribe.root)

    with pytest.raises(UnknownRelayError):
        seal(scribe)

    assert 0 == verify_ledger(store).seals


def test_a_seal_kept_elsewhere_finds_what_was_deleted() -> None:
    """Cut the newest run with everything about it: the ledger alone looks whole, the seal does not agree."""
    store = RacingStore()
    scribe = a_scribe(store)
    scribe.start()
    older = store.snapshot()
    scribe.start()
    note = seal(scribe).note
    store.restore(older)

    assert 2 == verify_ledger(store).receipts
    with pytest.raises(SealError, match="at least 1 were deleted"):
        verify_ledger(store, seals=[note])
