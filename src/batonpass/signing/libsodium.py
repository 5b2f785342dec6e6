"""The four functions of libsodium that we sign with, called directly.

PyNaCl's own wrappers around them are left out. Importing those takes 40 ms of processor time, which every helper
process of a verification would pay, because one package has all of them. And they copy each message twice, which we do
not need: to sign or to check costs 3 to 6 % less without that. The library below them is the same. See ADR 71.
"""

from typing import Any, Final

from nacl import _sodium

SIGNATURE_BYTES: Final = 64
SEED_BYTES: Final = 32
PUBLIC_KEY_BYTES: Final = 32

_ffi: Final[Any] = _sodium.ffi
_lib: Final[Any] = _sodium.lib
_NOWHERE: Final[Any] = _ffi.NULL
_open: Final[Any] = _lib.crypto_sign_open
_sign: Final[Any] = _lib.crypto_sign

if _lib.sodium_init() == -1:  # pragma: no cover - there is no randomness on this machine
    raise ImportError("libsodium cannot start on this machine")


def make_keys(seed: bytes) -> tuple[bytes, bytes]:
    """Return the public key and the secret key that belong to a seed of `SEED_BYTES`."""
    public = _ffi.new("unsigned char[]", PUBLIC_KEY_BYTES)
    secret = _ffi.new("unsigned char[]", SEED_BYTES + PUBLIC_KEY_BYTES)
    _lib.crypto_sign_seed_keypair(public, secret, seed)
    return _ffi.buffer(public)[:], _ffi.buffer(secret)[:]


def sign(message: bytes, secret: bytes) -> bytes:
    """Return the signature of a message by a secret key that `make_keys` returned."""
    signed = _ffi.new("unsigned char[]", SIGNATURE_BYTES + len(message))
    _sign(signed, _NOWHERE, message, len(message), secret)
    signature: bytes = _ffi.buffer(signed, SIGNATURE_BYTES)[:]
    return signature


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature over a message was made with the key that belongs to this public key."""
    # libsodium reads as many bytes as a key and a signature have, whatever it is given.
    if len(signature) != SIGNATURE_BYTES or len(public_key) != PUBLIC_KEY_BYTES:
        return False
    signed = signature + message
    # It would copy the message to the first address, and its length to the second. We have both.
    verdict: int = _open(_NOWHERE, _NOWHERE, signed, len(signed), public_key)
    return verdict == 0


def is_strong(public_key: bytes) -> bool:
    """Return whether a public key is a valid point of the main subgroup, in its one spelling."""
    if len(public_key) != PUBLIC_KEY_BYTES or not _lib.PYNACL_HAS_CRYPTO_CORE_ED25519:
        return False
    strong: int = _lib.crypto_core_ed25519_is_valid_point(public_key)
    return strong == 1
