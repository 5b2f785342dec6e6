"""Whether a signature is a key's over a message. Alone in its module: processes that only check need no more."""

from nacl.bindings import crypto_sign_BYTES, crypto_sign_open
from nacl.exceptions import CryptoError


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature is that key's over that message."""
    if len(signature) != crypto_sign_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public_key)
    except (CryptoError, ValueError):
        return False
    return True
