"""Keys as the ledger knows them: their owner, their role, and whether they may still sign."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from batonpass.model.base.checks import require_digest, require_member
from batonpass.model.base.ids import RELAY, KeyId, PrincipalId, PublicKey, RelayId, RunId, require_id, require_principal
from batonpass.model.base.passkey import require_approver_key


class KeyRole(StrEnum):
    """The role of a key: the statements that it may sign."""

    ROOT = "root"
    RELAY = "relay"
    APPROVER = "approver"


class KeyStatus(StrEnum):
    """Whether a key may still sign. Old signatures of a retired key stay valid; see docs/spec/keys.md."""

    ACTIVE = "active"
    RETIRED = "retired"
    REVOKED = "revoked"


class Key(Struct, frozen=True, kw_only=True):
    """A public key that this ledger trusts, or once trusted."""

    id: KeyId
    role: KeyRole
    public_key: PublicKey
    relay: RelayId | None  # None for the root key and for an approver's key
    status: KeyStatus
    principal: PrincipalId | None = None  # for an approver's key: whose rulings it signs

    def __post_init__(self) -> None:
        require_digest("id", self.id)
        check = require_approver_key if self.role is KeyRole.APPROVER else require_digest
        check("public_key", self.public_key)
        require_member("role", self.role, KeyRole)
        require_member("status", self.status, KeyStatus)
        if self.relay is not None:
            require_id("relay", self.relay, RELAY)
        if self.principal is not None:
            require_principal("principal", self.principal)


class Signer(Protocol):
    """Has a private key and signs with it. Nobody else sees the key."""

    @property
    def key(self) -> KeyId:
        """Return the id of the key."""

    @property
    def public_key(self) -> PublicKey:
        """Return the public key."""

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of message."""


class RunKeys(Protocol):
    """Keeps the keys of open runs."""

    def new(self) -> Signer:
        """Return a new key. It is not kept yet."""

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key in place of an older epoch's. Call it when the receipt that names the key is durable."""

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch. Raises `KeyMissingError`."""

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
