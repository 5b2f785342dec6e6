"""Ed25519 by libsodium: sign, check signatures, and refuse weak keys, with which anybody could sign."""

import os
from hashlib import sha256

from batonpass.errors import KeyRefusedError
from batonpass.model.base.ids import KeyId, PublicKey
from batonpass.signing.libsodium import SEED_BYTES, is_strong, make_keys, sign
from batonpass.signing.libsodium import is_signed as is_signed  # noqa: PLC0414 - one place for all about these keys


class Ed25519Signer:
    """A private key in this process's memory."""

    __slots__ = ("_secret", "key", "public_key")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise KeyRefusedError(f"an Ed25519 seed has {SEED_BYTES} bytes, this one has {len(seed)}")
        public, self._secret = make_keys(seed)
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
        return sign(message, self._secret)

    def __repr__(self) -> str:
        return f"Ed25519Signer({self.key[:16]})"


def require_strong(public_key: PublicKey) -> PublicKey:
    """Return a public key if it is a valid point of the main subgroup. Raises `KeyRefusedError`.

    For a point of small order, anybody can make valid signatures. Such a key must never be enrolled.
    """
    try:
        strong = is_strong(bytes.fromhex(public_key))
    except (ValueError, TypeError):
        raise KeyRefusedError("a public key is 32 bytes in hexadecimal; this is something else") from None
    if not strong:
        raise KeyRefusedError(f"public key {public_key[:16]} is not a valid Ed25519 point of full order")
    return public_key
