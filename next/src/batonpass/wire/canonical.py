"""One encoding for everything that is signed or digested.

The encoder only sorts keys. That gives the bytes of RFC 8785 because the schema of what is signed is closed: no floats,
integers below 2^53, keys that are ASCII. Content is not signed but digested, and may hold any JSON.
"""

from hashlib import sha256
from hmac import digest as hmac_digest
from typing import Final

from msgspec import json

GENESIS_LABEL: Final = b"batonpass ledger v0"

encode: Final = json.Encoder(order="sorted").encode


def digest(data: bytes) -> str:
    """Return the sha256 of data, in hex."""
    return sha256(data).hexdigest()


def keyed_digest(key: bytes, data: bytes) -> str:
    """Return a digest by which equal things are recognised, but by nobody who lacks the key."""
    return hmac_digest(key, data, "sha256").hex()


def genesis(root_key: str) -> str:
    """Return what the first receipt of a root run or a relay hangs from: this ledger, and no other."""
    return digest(GENESIS_LABEL + bytes.fromhex(root_key))
