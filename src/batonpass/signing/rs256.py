"""RSA with SHA-256 (PKCS #1, version 1.5), checking only: the passkeys that some computers keep in their own chip.

As in `p256.py`, nothing here is secret. The expected signed bytes are made as a whole and compared: no bytes that an
attacker chose are parsed.
"""

from hashlib import sha256
from typing import Final

EXPONENT: Final = 65537  # that of every authenticator; others are refused when the key is read
_DIGEST_INFO: Final = bytes.fromhex("3031300d060960864801650304020105000420")  # RFC 8017, section 9.2, note 1


def is_modulus(public: bytes) -> bool:
    """Return whether these bytes can be a modulus: odd, and as long as they claim."""
    return bool(public) and public[0] >= 0x80 and public[-1] & 1 == 1  # noqa: PLR2004 - the highest bit


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a key signed exactly this message. RFC 8017, section 8.2.2."""
    if len(signature) != len(public) or not is_modulus(public):
        return False
    modulus, number = int.from_bytes(public), int.from_bytes(signature)
    tail = _DIGEST_INFO + sha256(message).digest()
    expected = b"\x00\x01" + b"\xff" * (len(public) - len(tail) - 3) + b"\x00" + tail
    return number < modulus and pow(number, EXPONENT, modulus) == int.from_bytes(expected)
