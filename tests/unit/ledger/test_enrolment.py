"""Which relays may record: the root key says so, in receipts."""

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import DuplicateReceiptError, KeyRefusedError, NotFoundError, UnknownKeyError, UnknownRelayError
from batonpass.ledger.enrolment import found_ledger
from batonpass.model.base.ids import StreamId, new_relay_id
from batonpass.model.bodies.body import Kind, RelayEnrolled, RelayRevoked, RelayRotated
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.receipt import Receipt
from batonpass.relay import Relay, recording_of
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import RelayIdentity
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing import FrozenClock
from batonpass.testing.builders import ANA, Scribe, a_scribe
from batonpass.testing.clock import NOON
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.ledger.stores import two_processes
from tests.unit.model.examples import EDITOR


def own_receipts(scribe: Scribe) -> list[Receipt]:
    with scribe.store.view() as view:
        found = view.find_receipts(ReceiptQuery(stream=StreamId(scribe.identity.id)))
        return [decode_receipt(stored.payload) for stored in found]


def statuses_in(store: LedgerStore) -> dict[str, KeyStatus]:
    with store.view() as view:
        return {key.id: key.status for key in view.find_keys() if key.role is KeyRole.RELAY}


def a_stranger() -> RelayIdentity:
    return RelayIdentity(new_relay_id(NOON), Ed25519Signer.generate())


def enrolled(scribe: Scribe) -> Scribe:
    """Enrol another relay and return its writing hand."""
    other = a_scribe(scribe.store, identity=a_stranger(), root=scribe.root)
    scribe.enrolment.enroll(other.identity.id, other.identity.signer.public_key, root=scribe.root)
    return other


def test_a_ledger_begins_with_a_relay_that_enrols_itself() -> None:
    """The first receipt hangs from the genesis, enrols the key that records it, and is signed by the root."""
    scribe = a_scribe(store := MemoryStore())
    (first,) = own_receipts(scribe)
    with store.view() as view:
        info = view.info()
    public_key = scribe.identity.signer.public_key

    assert RelayEnrolled(relay=scribe.identity.id, public_key=public_key) == first.body
    assert (info.genesis, scribe.identity.signer.key, scribe.root.key) == (
        first.previous,
        first.relay_key,
        first.cosigner,
    )
    assert scribe.root.public_key == info.root_key
    assert (1, 2, 1) == (
        verify_ledger(store).receipts,
        verify_ledger(store).signatures,
        verify_ledger(store).relays,
    )


def test_a_ledger_is_founded_once() -> None:
    """Whoever founds second is told who it is already, and writes nothing."""
    scribe = a_scribe(store := MemoryStore())
    with store.view() as view:
        info = view.info()
    again = found_ledger(store, a_stranger(), Ed25519Signer.generate(), FrozenClock())

    assert info == again
    assert 1 == len(own_receipts(scribe)) == verify_ledger(store).receipts


def test_an_enrolled_relay_records_beside_the_first() -> None:
    """Two relays with keys of their own write one ledger, and everything verifies."""
    scribe = a_scribe(store := MemoryStore())
    other = enrolled(scribe)
    other.recording.close(other.start())
    scribe.recording.close(scribe.start())
    evidence = verify_ledger(store)

    assert (2, 2, 6) == (evidence.relays, evidence.runs, evidence.receipts)
    assert {KeyStatus.ACTIVE} == set(statuses_in(store).values())


def test_a_stranger_records_nothing() -> None:
    """A relay that nobody enrolled is refused, and the error says what to run."""
    store = a_scribe(MemoryStore()).store
    stranger = a_scribe(store, identity=a_stranger())

    with pytest.raises(UnknownRelayError, match=r"is not enrolled.*batonpass key enroll"):
        stranger.start()

    assert 1 == verify_ledger(store).receipts


def test_a_key_is_enrolled_once() -> None:
    """The same key a second time, for whatever relay, is refused."""
    scribe = a_scribe(store := MemoryStore())
    public_key = scribe.identity.signer.public_key

    with pytest.raises(DuplicateReceiptError):
        scribe.enrolment.enroll(new_relay_id(NOON), public_key, root=scribe.root)

    assert 1 == verify_ledger(store).receipts


def test_a_rotation_names_both_keys() -> None:
    """The old key signs the rotation and then nothing more; the new one goes on in the same stream."""
    scribe = a_scribe(store := MemoryStore())
    fresh = Ed25519Signer.generate()
    old = scribe.identity.signer
    scribe.enrolment.rotate(fresh.public_key, root=scribe.root)
    renewed = a_scribe(store, identity=RelayIdentity(scribe.identity.id, fresh), root=scribe.root)
    renewed.start()
    _, rotation = own_receipts(scribe)

    assert RelayRotated(relay=scribe.identity.id, old_key=old.public_key, public_key=fresh.public_key) == rotation.body
    assert (old.key, scribe.root.key) == (rotation.relay_key, rotation.cosigner)
    assert {old.key: KeyStatus.RETIRED, fresh.key: KeyStatus.ACTIVE} == statuses_in(store)
    with pytest.raises(UnknownRelayError, match="no longer active"):
        scribe.start()
    assert 1 == verify_ledger(store).relays


def test_a_revoked_key_records_nothing_more() -> None:
    """Revocation is a receipt of whoever revokes, with a reason in words; what was recorded before stays good."""
    scribe = a_scribe(store := MemoryStore())
    other = enrolled(scribe)
    lead = other.start()
    key = other.identity.signer
    scribe.enrolment.revoke(other.identity.id, key.public_key, reason="lost laptop", root=scribe.root)
    *_, revocation = own_receipts(scribe)

    assert RelayRevoked(relay=other.identity.id, public_key=key.public_key) == revocation.body
    assert {"reason"} == set(revocation.content)
    assert KeyStatus.REVOKED == statuses_in(store)[key.key]
    with pytest.raises(UnknownRelayError, match="no longer active"):
        other.call(lead)
    assert 1 == verify_ledger(store).runs


def test_a_key_that_was_never_enrolled_cannot_be_revoked() -> None:
    """Revoking an unknown key is refused by its name."""
    scribe = a_scribe(store := MemoryStore())
    stranger = a_stranger()

    with pytest.raises(NotFoundError, match=stranger.signer.key):
        scribe.enrolment.revoke(stranger.id, stranger.signer.public_key, reason="?", root=scribe.root)

    assert 1 == verify_ledger(store).receipts


@pytest.mark.parametrize("kind", [Kind.RELAY_ENROLLED, Kind.RELAY_ROTATED, Kind.RELAY_REVOKED], ids=str)
def test_only_the_root_decides(kind: Kind) -> None:
    """An act about relays that another key signed in the root's place is found by whoever verifies."""
    scribe = a_scribe(store := MemoryStore())
    fresh, usurper = Ed25519Signer.generate(), Ed25519Signer.generate()
    match kind:
        case Kind.RELAY_ENROLLED:
            scribe.enrolment.enroll(new_relay_id(NOON), fresh.public_key, root=usurper)
        case Kind.RELAY_ROTATED:
            scribe.enrolment.rotate(fresh.public_key, root=usurper)
        case _:
            own = scribe.identity.signer.public_key
            scribe.enrolment.revoke(scribe.identity.id, own, reason="?", root=usurper)

    with pytest.raises(UnknownKeyError) as found:
        verify_ledger(store)

    assert (scribe.identity.id, 2, "cosigner") == (found.value.stream, found.value.seq, found.value.field)


def test_two_processes_of_a_relay_share_its_stream() -> None:
    """Enrolments of two processes at turns make one chain."""
    store = MemoryStore()
    for scribe in two_processes(store) * 2:
        enrolled(scribe)

    assert (5, 5) == (verify_ledger(store).receipts, verify_ledger(store).relays)


def test_a_relay_is_not_revoked_twice() -> None:
    """What is not an active relay key cannot be revoked, and the root key never."""
    relay = Relay(MemoryStore())
    recording_of(relay).start("x", agent=EDITOR, by=ANA)
    root, own = relay.admin.keys()

    with pytest.raises(KeyRefusedError, match="not an active relay key"):
        relay.admin.revoke(root, reason="no")
    with pytest.raises(KeyRefusedError, match="not an active relay key"):
        relay.admin.revoke(replace(own, status=KeyStatus.RETIRED), reason="no")
