"""Passkeys as approver keys: a public key that lives in an authenticator, and is bound to one site.

An approver's public key is either 32 bytes of Ed25519 in hexadecimal or a passkey. As text a passkey is one word:
`passkey:<algorithm>:<site>:<credential>:<public key>`. So it stands wherever a public key stands, and a command can
take it.
"""

import re
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest, shorten
from batonpass.model.base.ids import PublicKey

PASSKEY: Final = "passkey"
_LONGEST_CREDENTIAL: Final = 1023  # bytes; WebAuthn allows no more
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SITE: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NAMED: Final = re.compile("[a-z]")  # an address is no name: browsers refuse passkeys there
_DIGITS: Final = frozenset("0123456789abcdef")


class PasskeyAlgorithm(StrEnum):
    """How a passkey signs."""

    ES256 = "es256"  # ECDSA over P-256 with SHA-256
    ED25519 = "ed25519"
    RS256 = "rs256"  # RSA with SHA-256 and the exponent 65537


# From and to how many hexadecimal digits a public key has.
_HEX_DIGITS: Final = {
    PasskeyAlgorithm.ES256: (128, 128),
    PasskeyAlgorithm.ED25519: (64, 64),
    PasskeyAlgorithm.RS256: (512, 1024),
}


class Passkey(Struct, frozen=True, kw_only=True):
    """The public half of a passkey. Raises `InvalidValueError` if a part is malformed."""

    algorithm: PasskeyAlgorithm
    site: str  # the name of the host at which it was made, and the only one at which it signs
    credential: str  # how the browser finds it, in base64url without padding
    public: str  # in hexadecimal: x and y of a point of P-256, the 32 bytes of Ed25519, or an RSA modulus

    def __post_init__(self) -> None:
        if not isinstance(self.site, str) or not _SITE.fullmatch(self.site) or not _NAMED.search(self.site):
            raise InvalidValueError("passkey.site", f"{shorten(self.site)} is not the name of a host")
        if not 0 < len(read_base64url("passkey.credential", self.credential)) <= _LONGEST_CREDENTIAL:
            raise InvalidValueError("passkey.credential", f"has at most {_LONGEST_CREDENTIAL} bytes")
        least, most = _HEX_DIGITS[self.algorithm]
        if not least <= len(self.public) <= most or len(self.public) % 2 or not _DIGITS.issuperset(self.public):
            raise InvalidValueError("passkey.public", f"{shorten(self.public)} is no public key of {self.algorithm}")

    @property
    def text(self) -> PublicKey:
        """Return it as one word."""
        return PublicKey(f"{PASSKEY}:{self.algorithm}:{self.site}:{self.credential}:{self.public}")


def find_passkey(public_key: str) -> Passkey | None:
    """Return the passkey that a public key is; None if it is a key of 32 bytes. Raises `InvalidValueError`."""
    if not public_key.startswith(f"{PASSKEY}:"):
        return None
    parts = public_key.split(":")
    if len(parts) != 5 or parts[1] not in set(PasskeyAlgorithm):  # noqa: PLR2004 - the parts that the text above names
        raise InvalidValueError("public_key", f"{shorten(public_key)} is no passkey that this program knows")
    _, algorithm, site, credential, public = parts
    return Passkey(algorithm=PasskeyAlgorithm(algorithm), site=site, credential=credential, public=public)


def require_approver_key(field: str, value: PublicKey) -> PublicKey:
    """Return the public key of an approver: 32 bytes in hexadecimal, or a passkey. Raises `InvalidValueError`."""
    if isinstance(value, str) and find_passkey(value) is not None:
        return value
    return require_digest(field, value)


def public_bytes(public_key: PublicKey) -> bytes:
    """Return the raw bytes of a public key, of a passkey as well: its id is their digest."""
    return bytes.fromhex(public_key.rpartition(":")[2])


def read_base64url(field: str, text: str) -> bytes:
    """Return the bytes of a text in base64url without padding. Raises `InvalidValueError`."""
    try:
        if not text.isascii() or re.fullmatch("[A-Za-z0-9_-]*", text) is None:
            raise InvalidValueError(field, f"{shorten(text)} is not base64url without padding")
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, AttributeError, TypeError):
        raise InvalidValueError(field, f"{shorten(text)} is not base64url without padding") from None
