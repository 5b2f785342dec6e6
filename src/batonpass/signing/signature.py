"""The check of one signature. It has its own module so that processes that only verify load nothing else."""

from nacl.bindings import crypto_sign_BYTES, crypto_sign_open
from nacl.exceptions import CryptoError


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature over a message was made with the key that belongs to this public key."""
    if len(signature) != crypto_sign_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public_key)
    except (CryptoError, ValueError):
        return False
    return True
