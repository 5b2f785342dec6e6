"""Keys of runs that are on other machines: their holders sign there, and nobody here ever has the key.

A control plane judges and records for programs elsewhere. While it does one act for such a program, the program can be
asked for signatures; the act waits until it has them, and nothing is written before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Final, Protocol

from batonpass.errors import KeyMissingError
from batonpass.model.base.ids import KeyId, PublicKey, RunId
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.key import RunKeys, Signer


class SignatureSource(Protocol):
    """Somebody elsewhere who can be asked for signatures while one act of theirs is done."""

    @property
    def new_key(self) -> PublicKey | None:
        """Return the key that they made for a run which this act begins; None if it begins none."""

    def obtain(self, key: PublicKey, message: bytes, contents: tuple[Content, ...]) -> bytes:
        """Return a checked signature of message by their key. `contents` are those that the message names by digest.

        Raises `SignatureMissingError` if there is none.
        """


_SOURCE: Final[ContextVar[SignatureSource | None]] = ContextVar("batonpass_signatures", default=None)


@contextmanager
def signed_elsewhere(source: SignatureSource) -> Iterator[None]:
    """Let the program that asks for acts within the block sign for its own runs."""
    before = _SOURCE.set(source)
    try:
        yield
    finally:
        _SOURCE.reset(before)


def signature_source() -> SignatureSource | None:
    """Return the program elsewhere that can be asked for signatures now; None if there is none."""
    return _SOURCE.get()


class ElsewhereSigner:
    """A key whose holder is elsewhere. It signs by asking them."""

    __slots__ = ("_source", "key", "public_key")

    def __init__(self, public_key: PublicKey, source: SignatureSource) -> None:
        self.public_key = public_key
        self.key = KeyId(sha256(bytes.fromhex(public_key)).hexdigest())
        self._source = source

    def sign(self, message: bytes) -> bytes:
        """Return a signature of message by the holder of the key."""
        return self._source.obtain(self.public_key, message, ())

    def sign_shown(self, message: bytes, contents: tuple[Content, ...]) -> bytes:
        """Return the same, and show the holder the contents that the message names by digest."""
        return self._source.obtain(self.public_key, message, contents)


class RunKeysElsewhere:
    """Keeps the keys of runs here as before, and asks the holders of those that are elsewhere."""

    def __init__(self, kept: RunKeys, present_key: Callable[[RunId], tuple[PublicKey, int]]) -> None:
        self._kept = kept
        self._present_key = present_key  # of a run, by its receipts, with its epoch

    def new(self) -> Signer:
        """Return the key that the caller made for a new run, if they keep it; else a new one."""
        source = _SOURCE.get()
        if source is None or source.new_key is None:
            return self._kept.new()
        return ElsewhereSigner(source.new_key, source)

    def keep(self, run: RunId, epoch: int, signer: Signer) -> None:
        """Keep a run's key, unless it is kept elsewhere: then its receipt says all that is needed."""
        if not isinstance(signer, ElsewhereSigner):
            self._kept.keep(run, epoch, signer)

    def get(self, run: RunId) -> tuple[Signer, int]:
        """Return a run's key and its epoch. Raises `KeyMissingError` if it is neither here nor with the caller."""
        try:
            return self._kept.get(run)
        except KeyMissingError:
            source = _SOURCE.get()
            if source is None:
                raise
        key, epoch = self._present_key(run)
        return ElsewhereSigner(key, source), epoch

    def drop(self, run: RunId) -> None:
        """Forget the key of a run that is over."""
        self._kept.drop(run)
