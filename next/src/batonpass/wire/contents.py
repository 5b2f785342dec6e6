"""Contents: the words beside a receipt, each salted, and packed into one value of one row.

The receipt has the digest of salt and words. Without the salt nobody can try words out against it, so a part that is
erased is gone, and the chain stays whole.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import DecodeError, msgpack

from batonpass.errors import InvalidValueError, VerificationError
from batonpass.wire.canonical import digest

Contents: TypeAlias = Mapping[str, bytes]

NOTHING: Final[Contents] = MappingProxyType({})
LARGEST_CONTENTS: Final = 16 * 1024 * 1024
_SALT_BYTES: Final = 16

_decode: Final = msgpack.Decoder(dict[str, tuple[bytes, bytes] | None]).decode
_encode: Final = msgpack.Encoder().encode


def pack(contents: Contents, entropy: Callable[[int], bytes]) -> tuple[dict[str, str], bytes | None]:
    """Return the digest of each part, and all parts packed. Raises `InvalidValueError` if they are too large."""
    if not contents:
        return {}, None
    salts = entropy(_SALT_BYTES * len(contents))
    salted: dict[str, tuple[bytes, bytes]] = {}
    digests: dict[str, str] = {}
    for number, (part, data) in enumerate(contents.items()):
        salt = salts[number * _SALT_BYTES : (number + 1) * _SALT_BYTES]
        salted[part] = (salt, data)
        digests[part] = digest(salt + data)
    packed = _encode(salted)
    if len(packed) > LARGEST_CONTENTS:
        detail = f"{len(packed):,} bytes beside one receipt, at most {LARGEST_CONTENTS:,}: attach it as a file instead"
        raise InvalidValueError(detail, code="content.too_large")
    return digests, packed


def unpack(packed: bytes | None, expected: Mapping[str, str]) -> dict[str, bytes | None]:
    """Return the contents by part; None for one that was erased. Raises `VerificationError` if they are others."""
    try:
        stored = {} if packed is None else _decode(packed)
    except (DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise VerificationError(f"its contents are not what was stored: {error}", code="verify.content") from None
    if packed is not None and (not stored or _encode(stored) != packed):
        raise VerificationError("its contents are packed in another way than they were written", code="verify.content")
    if stored.keys() != expected.keys():
        parts = ", ".join(sorted(stored.keys() ^ expected.keys()))
        raise VerificationError(f"has other contents than it names: {parts}", code="verify.content")
    for part, salted in stored.items():
        # Salt and words are digested as one: cut elsewhere, "not approved" would become "approved".
        if salted is not None and (len(salted[0]) != _SALT_BYTES or digest(salted[0] + salted[1]) != expected[part]):
            raise VerificationError(f"its content {part!r} is not what it committed to", code="verify.content")
    return {part: None if salted is None else salted[1] for part, salted in stored.items()}
