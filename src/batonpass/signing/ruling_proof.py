"""Whether an approver's key signed a ruling: with a key in a file, or with a passkey in a browser.

A key in a file signs the bytes of the ruling. A passkey signs the request of the browser: the digest of those bytes as
the challenge, the site, and whether a person was there and proved to be its owner. The verifier makes the bytes again,
so one answer fits one ruling. docs/spec/keys.md, section 9, numbers the steps.
"""

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from batonpass.errors import InvalidValueError, KeyRefusedError
from batonpass.model.base.ids import KeyId, PublicKey
from batonpass.model.base.passkey import Passkey, PasskeyAlgorithm, find_passkey, public_bytes
from batonpass.model.bodies.body import PasskeyAnswer
from batonpass.signing import p256, rs256
from batonpass.signing.ed25519 import is_signed, require_strong
from batonpass.wire.receipt_codec import signing_bytes

_IS_SIGNED: Final = {
    PasskeyAlgorithm.ES256: p256.is_signed,
    PasskeyAlgorithm.ED25519: is_signed,
    PasskeyAlgorithm.RS256: rs256.is_signed,
}
_IS_KEY: Final = {PasskeyAlgorithm.ES256: p256.is_point, PasskeyAlgorithm.RS256: rs256.is_modulus}

_GET: Final = "webauthn.get"
_LOCAL: Final = "localhost"  # browsers trust it without TLS, as nobody else can answer there
_DIGEST_BYTES: Final = 32
_FIXED_BYTES: Final = 37  # the digest of the site, the flags, the counter
_PRESENT: Final = 0x01
_VERIFIED: Final = 0x04
_HAS_MORE: Final = 0x40 | 0x80  # about a new key, or extensions


class PasskeySigner:
    """A passkey that has signed already, elsewhere: it answers with that signature, whatever it is asked for.

    So its signature is always verified before it is recorded.
    """

    __slots__ = ("_signature", "key", "public_key")

    def __init__(self, key: KeyId, public_key: PublicKey, signature: bytes) -> None:
        self.key = key
        self.public_key = public_key
        self._signature = signature

    def sign(self, message: bytes) -> bytes:
        """Return the signature that it made."""
        del message
        return self._signature


def challenge_of(payload: bytes) -> bytes:
    """Return the challenge of a ruling for a passkey: the digest of the bytes that other keys sign."""
    return sha256(signing_bytes(payload)).digest()


def find_objection(
    public_key: PublicKey, payload: bytes, signature: bytes, answer: PasskeyAnswer | None = None
) -> str | None:
    """Return why a signature does not prove a ruling; None if it does."""
    passkey = find_passkey(public_key)
    if passkey is None:
        if answer is not None:
            return "a passkey answered, and the key is none"
        message = signing_bytes(payload)
        return None if is_signed(public_bytes(public_key), message, signature) else "the key did not sign this ruling"
    if answer is None:
        return "the key is a passkey, and what its browser said is missing"
    return (
        _client_objection(passkey, answer, challenge_of(payload))
        or _authenticator_objection(passkey, bytes.fromhex(answer.authenticator_data))
        or _signature_objection(passkey, answer, signature)
    )


def read_signature(algorithm: PasskeyAlgorithm, made: bytes) -> bytes:
    """Return the signature of an authenticator in the form in which it is recorded. Raises `ValueError`."""
    return p256.read_der(made) if algorithm is PasskeyAlgorithm.ES256 else made


def require_usable(public_key: PublicKey) -> PublicKey:
    """Return the key of an approver if its signatures prove something. Raises `KeyRefusedError`.

    Under a key that is no proper point of its curve, anybody can make signatures that fit.
    """
    try:
        passkey = find_passkey(public_key)
    except InvalidValueError as error:
        raise KeyRefusedError(str(error)) from None
    if passkey is None or passkey.algorithm is PasskeyAlgorithm.ED25519:
        require_strong(public_key if passkey is None else PublicKey(passkey.public))
    elif not _IS_KEY[passkey.algorithm](bytes.fromhex(passkey.public)):
        raise KeyRefusedError(f"public key {passkey.public[:16]} is none of {passkey.algorithm}")
    return public_key


def is_site_of(origin: str, site: str) -> bool:
    """Return whether an origin is the site of a passkey: over TLS, or on this machine."""
    try:
        parts = urlsplit(origin)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        return False
    return host == site and (parts.scheme == "https" or (parts.scheme == "http" and site == _LOCAL))


# Steps 1 to 4: the data of the browser.
def _client_objection(passkey: Passkey, answer: PasskeyAnswer, challenge: bytes) -> str | None:
    try:
        said = json.loads(answer.client_data)
    except (ValueError, RecursionError):
        return "what the browser said cannot be read"
    if not isinstance(said, dict) or said.get("type") != _GET:
        return "the browser did not ask the passkey for a signature"
    if said.get("challenge") != urlsafe_b64encode(challenge).rstrip(b"=").decode():
        return "the passkey signed another ruling"
    origin = said.get("origin")
    if not isinstance(origin, str) or not is_site_of(origin, passkey.site):
        return f"the passkey was asked at another site than {passkey.site}"
    # In a frame of another site, that site decides everything that is shown around it.
    if said.get("crossOrigin") not in {None, False} or "topOrigin" in said:
        return "the passkey was asked within a page of another site"
    return None


# Steps 5 to 7: the data of the authenticator.
def _authenticator_objection(passkey: Passkey, data: bytes) -> str | None:
    flags = data[_DIGEST_BYTES]
    if data[:_DIGEST_BYTES] != sha256(passkey.site.encode()).digest():
        return f"the authenticator answered for another site than {passkey.site}"
    if not flags & _PRESENT:
        return "nobody was at the authenticator"
    if not flags & _VERIFIED:
        return "the authenticator did not verify who was there"
    if len(data) > _FIXED_BYTES and not flags & _HAS_MORE:
        return "the authenticator says more than it announces"
    return None


# Step 8: the signature.
def _signature_objection(passkey: Passkey, answer: PasskeyAnswer, signature: bytes) -> str | None:
    message = bytes.fromhex(answer.authenticator_data) + sha256(answer.client_data.encode()).digest()
    return (
        None
        if _IS_SIGNED[passkey.algorithm](bytes.fromhex(passkey.public), message, signature)
        else "the passkey did not sign this answer"
    )
