"""Ed25519 keys. A run's key is derived: the relay's secret gives the keys of its runs; none is stored."""

from collections.abc import Callable
from hmac import digest as hmac_digest
from typing import Final

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

SEED_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_RUN_KEY_LABEL: Final = b"batonpass run key v0"


class KeyPair:
    """An Ed25519 key that signs. Its public half, in hex, is its name."""

    __slots__ = ("_run_secret", "_secret", "public")

    def __init__(self, seed: bytes) -> None:
        # The bindings and not `nacl.signing`: the same C function, six Python calls fewer for each signature.
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.public = public.hex()
        self._run_secret = hmac_digest(_RUN_KEY_LABEL, seed, "sha256")  # HKDF's extract step

    @classmethod
    def new(cls, entropy: Callable[[int], bytes]) -> "KeyPair":
        """Return a key that nobody else has."""
        return cls(entropy(SEED_BYTES))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return crypto_sign(message, self._secret)[:_SIGNATURE_BYTES]

    def run_key(self, run: str, epoch: int) -> "KeyPair":
        """Return the key of a run of this relay: the same one each time it is asked for (HKDF's expand step)."""
        return KeyPair(hmac_digest(self._run_secret, b"%s\0%d\x01" % (run.encode(), epoch), "sha256"))


def is_signed(message: bytes, signature: bytes, public: str) -> bool:
    """Return whether a signature is of this message and this key."""
    if len(signature) != _SIGNATURE_BYTES:  # what is too much or too little would be taken from the message
        return False
    try:
        crypto_sign_open(signature + message, bytes.fromhex(public))
    except (BadSignatureError, ValueError):
        return False
    return True
