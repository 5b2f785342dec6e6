"""Membership of a relay in a ledger: found it, join it, and enrol or revoke other relays and approvers."""

import contextlib
import threading
from datetime import datetime

from batonpass.clock import Clock
from batonpass.errors import (
    DuplicateReceiptError,
    KeyMissingError,
    KeyRefusedError,
    UnknownRelayError,
)
from batonpass.ledger.acknowledged_head import Acknowledged
from batonpass.ledger.enrolment import Enrolment, found_ledger
from batonpass.ledger.ledger import Ledger
from batonpass.model.base.ids import LedgerId, PrincipalId, PublicKey, RelayId
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus, Signer
from batonpass.model.ledger.projection import key_id
from batonpass.signing.ed25519 import require_strong
from batonpass.signing.keyring import Keyring, RelayIdentity
from batonpass.signing.ruling_proof import require_usable
from batonpass.store.port import LedgerStore


class Membership:
    """The membership of one relay in one ledger. Safe to use from many threads."""

    def __init__(self, store: LedgerStore, keyring: Keyring, clock: Clock) -> None:
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._joining = threading.Lock()
        self._joined: tuple[Ledger, RelayIdentity] | None = None
        self._acknowledged = Acknowledged(store, keyring.home)

    def identity(self) -> tuple[RelayId, PublicKey]:
        """Return the id and the public key of this relay, with which it can be enrolled."""
        identity = self._keyring.relay()
        return identity.id, identity.signer.public_key

    def join(self) -> tuple[Ledger, RelayIdentity]:
        """Return the ledger and the identity of this relay, once it is enrolled; found the ledger if there is none.

        Raises `UnknownRelayError` if the relay is not enrolled and the root key is not here to enrol it.
        """
        with self._joining:
            if self._joined is None:
                if not self._store.founded():
                    self._found()
                self._joined = self._enrolled()
            return self._joined

    def leave(self) -> None:
        """Save the latest receipt that the store has acknowledged, for the next process."""
        self._acknowledged.write()

    def keys(self) -> tuple[Key, ...]:
        """Return every key that is or was enrolled, the root key first."""
        with self._store.view() as view:
            return tuple(view.find_keys())

    def enroll(self, relay: RelayId, public_key: PublicKey) -> None:
        """Enrol another relay. Needs the root key. Raises `KeyRefusedError` for a weak key."""
        root = self.root()
        require_strong(public_key)
        self._enrolment().enroll(relay, public_key, root=root, vouched=self._vouched(relay, public_key, root))

    def rotate(self) -> PublicKey:
        """Replace the key of this relay by a new one, and return it. Needs the root key."""
        root = self.root()
        enrolment = self._enrolment()
        fresh = self._keyring.propose_relay_key()
        relay, _ = self.identity()
        enrolment.rotate(fresh.public_key, root=root, vouched=self._vouched(relay, fresh.public_key, root))
        self._keyring.adopt_relay_key(fresh)
        self._joined = None
        return fresh.public_key

    def revoke(self, key: Key, *, reason: str) -> None:
        """Revoke the key of a relay. Needs the root key. Raises `KeyRefusedError` if it is no active key of a relay."""
        if key.role is not KeyRole.RELAY or key.relay is None or key.status is not KeyStatus.ACTIVE:
            raise KeyRefusedError(f"key {key.id[:16]} is not an active relay key; only those can be revoked")
        self._enrolment().revoke(key.relay, key.public_key, reason=reason, root=self.root())

    def enroll_approver(self, principal: PrincipalId, public_key: PublicKey) -> None:
        """Enrol the key with which somebody signs rulings. Needs the root key.

        Raises `KeyRefusedError` if the key is weak or known here already, or if the person has an active key.
        """
        require_usable(public_key)
        root = self.root()
        for key in self.keys():
            if key.principal == principal and key.status is KeyStatus.ACTIVE:
                raise KeyRefusedError(has_one(principal))
            if key.id == key_id(public_key):
                raise KeyRefusedError(f"key {key.id[:16]} is known here as a {key.status} {key.role}'s key")
        try:
            self._enrolment().enroll_approver(principal, public_key, root=root)
        except DuplicateReceiptError:  # another process enrolled one at the same moment
            raise KeyRefusedError(has_one(principal)) from None

    def revoke_approver(self, principal: PrincipalId, *, reason: str) -> Key:
        """Revoke the key of an approver and return it. Needs the root key. Raises `KeyMissingError` without one."""
        found = next(
            (key for key in self.keys() if key.principal == principal and key.status is KeyStatus.ACTIVE), None
        )
        if found is None:
            raise KeyMissingError(f"{principal} has no active approver's key in this ledger")
        self._enrolment().revoke_approver(principal, found.public_key, reason=reason, root=self.root())
        return found

    def root(self) -> Signer:
        """Return the root key of the ledger. Raises `KeyMissingError` if it is not on this machine."""
        with self._store.view() as view:
            wanted = view.info().root_key
        root = self._keyring.root()
        if root.public_key != wanted:
            raise KeyMissingError("the root key here is another ledger's; go where this ledger was founded")
        return root

    def _enrolment(self) -> Enrolment:
        ledger, identity = self.join()
        return Enrolment(self._store, ledger, identity, self._clock)

    def _enrolled(self) -> tuple[Ledger, RelayIdentity]:
        active = {key.id for key in self.keys() if key.status is KeyStatus.ACTIVE and key.role is KeyRole.RELAY}
        known = {key.id for key in self.keys()}
        proposed = self._keyring.proposed()
        if proposed is not None and proposed.key in active:
            # A rotation was recorded, but the process ended before it put the new key in place.
            self._keyring.adopt_relay_key(proposed)
        identity = self._keyring.relay()
        ledger = Ledger(self._store, identity, self._clock, self._acknowledged)
        if identity.signer.key in active:
            return ledger, identity
        if identity.signer.key in known:
            raise UnknownRelayError(identity.signer.key, enrolled=True)
        try:
            root = self.root()
        except KeyMissingError:
            raise UnknownRelayError(identity.signer.key) from None
        # A new relay enrols itself if the root key is here: the root key signs, and nobody else is needed. Another
        # process with the same keys may do so at the same time; then the enrolment is there, and that is fine.
        with contextlib.suppress(DuplicateReceiptError):
            Enrolment(self._store, ledger, identity, self._clock).enroll(
                identity.id,
                identity.signer.public_key,
                root=root,
                vouched=self._vouched(identity.id, identity.signer.public_key, root),
            )
        return ledger, identity

    def _found(self) -> None:
        relay, root = self._keyring.relay(), self._keyring.make_root()
        at = self._clock.now()
        found_ledger(
            self._store,
            relay,
            root,
            self._clock,
            vouch=lambda info: _vouch(info.id, relay.id, relay.signer.public_key, root=root, at=at),
        )

    def _vouched(self, relay: RelayId, public_key: PublicKey, root: Signer) -> tuple[Content, ...]:
        with self._store.view() as view:
            ledger = view.info().id
        return (_vouch(ledger, relay, public_key, root=root, at=self._clock.now()),)


def _vouch(ledger: LedgerId, relay: RelayId, public_key: PublicKey, *, root: Signer, at: datetime) -> Content:
    # Imported here because the code for grants is needed only when a relay is enrolled, which is rare.
    from batonpass.handoff.runtime.relay_voucher import vouch  # noqa: PLC0415 - as above

    return vouch(ledger, relay, public_key, root=root, at=at)


def has_one(principal: PrincipalId) -> str:
    """Return the sentence that refuses a second key: a spare key is one that nobody watches."""
    return (
        f"{principal} has an approver's key here already; revoke it first, with `batonpass approver revoke {principal}`"
    )
