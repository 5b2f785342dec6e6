"""Ed25519 by libsodium: sign, check signatures, and refuse weak keys, with which anybody could sign."""

import os
from hashlib import sha256

from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_sign,
    crypto_sign_seed_keypair,
)

from batonpass.errors import KeyRefusedError
from batonpass.model.base.ids import KeyId, PublicKey
from batonpass.model.ledger.receipt import SIGNATURE_BYTES
from batonpass.signing.signature import is_signed as is_signed  # noqa: PLC0414 - one place for all about these keys

SEED_BYTES = 32


class Ed25519Signer:
    """A private key in this process's memory."""

    __slots__ = ("_secret", "key", "public_key")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise KeyRefusedError(f"an Ed25519 seed has {SEED_BYTES} bytes, this one has {len(seed)}")
        # The bindings and not nacl's classes: those wrap and copy each signature, and we would unwrap it again.
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.public_key = PublicKey(public.hex())
        self.key = KeyId(sha256(public).hexdigest())

    @classmethod
    def generate(cls) -> "Ed25519Signer":
        """Return a new key."""
        return cls(os.urandom(SEED_BYTES))

    @property
    def seed(self) -> bytes:
        """Return the secret seed, to be kept in a file."""
        return self._secret[:SEED_BYTES]

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of message."""
        return crypto_sign(message, self._secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"Ed25519Signer({self.key[:16]})"


def require_strong(public_key: PublicKey) -> PublicKey:
    """Return a public key if it is a valid point of the main subgroup. Raises `KeyRefusedError`.

    For a point of small order, anybody can make valid signatures. Such a key must never be enrolled.
    """
    try:
        strong = crypto_core_ed25519_is_valid_point(bytes.fromhex(public_key))
    except (ValueError, TypeError):
        raise KeyRefusedError("a public key is 32 bytes in hexadecimal; this is something else") from None
    if not strong:
        raise KeyRefusedError(f"public key {public_key[:16]} is not a valid Ed25519 point of full order")
    return public_key
