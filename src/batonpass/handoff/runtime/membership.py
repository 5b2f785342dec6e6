"""A relay's place in a ledger: founding it, joining it, and who else may record there."""

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
from batonpass.ledger.acknowledged import Acknowledged
from batonpass.ledger.enrolment import Enrolment, found_ledger
from batonpass.ledger.ledger import Ledger
from batonpass.model.base.ids import LedgerId, PrincipalId, PublicKey, RelayId
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus, Signer
from batonpass.model.ledger.projection import key_id
from batonpass.signing.ed25519 import require_strong
from batonpass.signing.keyring import Keyring, RelayIdentity
from batonpass.store.port import LedgerStore


class Membership:
    """How one relay stands in one ledger. Safe to use from many threads."""

    def __init__(self, store: LedgerStore, keyring: Keyring, clock: Clock) -> None:
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._joining = threading.Lock()
        self._joined: tuple[Ledger, RelayIdentity] | None = None
        self._acknowledged = Acknowledged(store, keyring.home)

    def identity(self) -> tuple[RelayId, PublicKey]:
        """Return what this relay asks to be enrolled as: its id and its public key."""
        identity = self._keyring.relay()
        return identity.id, identity.signer.public_key

    def join(self) -> tuple[Ledger, RelayIdentity]:
        """Return what records, once this relay is enrolled; found the ledger if nobody has."""
        with self._joining:
            if self._joined is None:
                if not self._store.founded():
                    self._found()
                self._joined = self._enrolled()
            return self._joined

    def leave(self) -> None:
        """Write down for the next process what the store has acknowledged."""
        self._acknowledged.write()

    def keys(self) -> tuple[Key, ...]:
        """Return every key that is or was enrolled, the root key first."""
        with self._store.view() as view:
            return tuple(view.find_keys())

    def enroll(self, relay: RelayId, public_key: PublicKey) -> None:
        """Let another relay record here. Needs the root key. Raises `KeyRefusedError` for a key that is no good."""
        root = self.root()
        require_strong(public_key)
        self._enrolment().enroll(relay, public_key, root=root, vouched=self._vouched(relay, public_key, root))

    def rotate(self) -> PublicKey:
        """Go on under a new relay key and return it. Needs the root key."""
        root = self.root()
        enrolment = self._enrolment()
        fresh = self._keyring.propose_relay_key()
        relay, _ = self.identity()
        enrolment.rotate(fresh.public_key, root=root, vouched=self._vouched(relay, fresh.public_key, root))
        self._keyring.adopt_relay_key(fresh)
        self._joined = None
        return fresh.public_key

    def revoke(self, key: Key, *, reason: str) -> None:
        """Stop a relay key from recording. Needs the root key. Raises `KeyRefusedError` for what cannot be revoked."""
        if key.role is not KeyRole.RELAY or key.relay is None or key.status is not KeyStatus.ACTIVE:
            raise KeyRefusedError(f"key {key.id[:16]} is not an active relay key; only those can be revoked")
        self._enrolment().revoke(key.relay, key.public_key, reason=reason, root=self.root())

    def enroll_approver(self, principal: PrincipalId, public_key: PublicKey) -> None:
        """Say whose decisions a key signs. Needs the root key.

        Raises `KeyRefusedError` for a key that is no good or known here, and for somebody who has one.
        """
        require_strong(public_key)
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
        """Let the key of somebody who approves prove nothing from now on, and return it. Needs the root key."""
        found = next(
            (key for key in self.keys() if key.principal == principal and key.status is KeyStatus.ACTIVE), None
        )
        if found is None:
            raise KeyMissingError(f"{principal} has no active approver's key in this ledger")
        self._enrolment().revoke_approver(principal, found.public_key, reason=reason, root=self.root())
        return found

    def root(self) -> Signer:
        """Return the ledger's root key. Raises `KeyMissingError` where it is not."""
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
            # A rotation was recorded and then interrupted before the new key was put in place.
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
        # Where the root key is, a relay that is new here enrols itself: the root signs, nobody else is needed.
        # Another process with the same keys may be at it too; then it is done.
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
    # What knows of grants is loaded by whoever has the root key's word to give: once for a ledger, and for each relay.
    from batonpass.handoff.runtime.relay_voucher import vouch  # noqa: PLC0415 - as above

    return vouch(ledger, relay, public_key, root=root, at=at)


def has_one(principal: PrincipalId) -> str:
    """Return why nobody gets a second key: two would be as good as none that anybody watches over."""
    return (
        f"{principal} has an approver's key here already; revoke it first, with `batonpass approver revoke {principal}`"
    )
