"""Enrolment: founding a ledger, and the keys that may write."""

import dataclasses

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    UnknownRelayError,
)
from batonpass.ledger.ledger import sign_receipt
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import RelayIdentity
from batonpass.store.port import LedgerInfo, LedgerStore
from batonpass.testing.builders import Scribe, a_scribe
from batonpass.testing.conformance.support import (
    NOW,
    WithScribe,
    a_second_relay,
    all_receipts,
    an_entry,
    enrolment_of,
    head_of,
)


class Enrolling(WithScribe):
    """Enrolment: founding a ledger, and the keys that may write."""

    def test_an_empty_store_is_not_founded(self, store: LedgerStore) -> None:
        """A store knows whether it holds a ledger."""
        assert not store.founded()

    def test_founding_is_done_once(self, store: LedgerStore) -> None:
        """A second founding writes nothing and returns the first ledger."""
        first = a_scribe(store)
        second = Ed25519Signer.generate()

        with store.view() as view:
            info = view.info()
        other = LedgerInfo(id=info.id, root_key=second.public_key)
        entry = Entry(signed=replace(sign_receipt(enrolment_of(first), None, first.identity, NOW)))

        assert info == store.found(other, entry)
        assert 1 == len(all_receipts(store))

    def test_founding_enrols_root_and_relay(self, store: LedgerStore, scribe: Scribe) -> None:
        """The first receipt enrols the founding relay."""
        with store.view() as view:
            root, relay = view.find_keys()

        assert (KeyRole.ROOT, scribe.root.key, None) == (root.role, root.id, root.relay)
        assert (KeyRole.RELAY, scribe.identity.signer.key) == (relay.role, relay.id)
        assert KeyStatus.ACTIVE == relay.status

    def test_an_unknown_relay_is_refused(self, store: LedgerStore, scribe: Scribe) -> None:
        """A receipt signed by a relay that nobody enrolled is not written."""
        lead = scribe.start()
        stranger = RelayIdentity(scribe.identity.id, Ed25519Signer.generate())
        entry = an_entry(dataclasses.replace(scribe, identity=stranger), lead, head_of(store, lead))

        with pytest.raises(UnknownRelayError):
            store.append([entry])

    def test_a_revoked_relay_is_refused_from_then_on(self, store: LedgerStore, scribe: Scribe) -> None:
        """Revocation stops the key at the next append."""
        lead = scribe.start()
        second = a_second_relay(scribe)
        store.append([an_entry(dataclasses.replace(scribe, identity=second.identity), lead, head_of(store, lead))])
        public_key = second.identity.signer.public_key
        scribe.enrolment.revoke(second.identity.id, public_key, reason="lost laptop", root=scribe.root)

        with pytest.raises(UnknownRelayError):
            store.append([an_entry(dataclasses.replace(scribe, identity=second.identity), lead, head_of(store, lead))])

    def test_a_rotated_key_is_retired_and_the_new_one_works(self, store: LedgerStore, scribe: Scribe) -> None:
        """After a rotation the old key can write nothing and the new one can."""
        lead = scribe.start()
        fresh = Ed25519Signer.generate()
        scribe.enrolment.rotate(fresh.public_key, root=scribe.root)
        renewed = dataclasses.replace(scribe, identity=RelayIdentity(scribe.identity.id, fresh))
        store.append([an_entry(renewed, lead, head_of(store, lead))])

        with pytest.raises(UnknownRelayError):
            store.append([an_entry(scribe, lead, head_of(store, lead))])
        with store.view() as view:
            statuses = {key.id: key.status for key in view.find_keys()}
        assert KeyStatus.RETIRED == statuses[scribe.identity.signer.key]
        assert KeyStatus.ACTIVE == statuses[fresh.key]
