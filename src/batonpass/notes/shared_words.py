"""The words of tasks, shared only if somebody asks for it: redacted, signed, and under a ref without history.

Erasing words replaces the ref. Others keep the words that they have fetched before. A stone in the place of erased
words says that they are gone, so that a clone which still has them does not bring them back.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import CONTENT, ContentId, Digest, PublicKey, require_id
from batonpass.model.ledger.content import content_digest
from batonpass.model.ledger.key import Signer
from batonpass.notes.note_record import LONGEST_RECORD, signing_bytes
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.canonical import encode_typed, read_base64, write_base64

_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64


class _Document(Struct, kw_only=True, omit_defaults=True):
    v: int
    content: str
    digest: str
    key: str
    words: str | None = None  # None: they were erased
    salt: str | None = None  # None: something was redacted, so nobody can check them against the receipt


_DOCUMENTS: Final = msgspec.json.Decoder(_Document)


class SharedWords(Struct, frozen=True, kw_only=True):
    """The words behind one digest, or that they are gone."""

    content: ContentId
    digest: Digest
    key: PublicKey
    words: str | None
    salt: bytes | None = None

    @property
    def is_exact(self) -> bool:
        """Return whether these are the very words that the receipt committed to."""
        return (
            self.words is not None
            and self.salt is not None
            and content_digest(self.salt, self.words.encode("utf-8", "surrogatepass")) == self.digest
        )


def write_words(words: SharedWords, signer: Signer) -> str:
    """Return shared words as one line, signed."""
    document = encode_typed(
        _Document(
            v=0,
            content=words.content,
            digest=words.digest,
            key=_write(bytes.fromhex(signer.public_key)),
            words=words.words,
            salt=None if words.salt is None else write_base64(words.salt),
        )
    )
    return f"{_write(signer.sign(signing_bytes(document)))} {document.decode()}"


def read_words(line: str) -> SharedWords | None:
    """Return the words in a line; None if it is something else, or not signed by the key that it names."""
    signature, _, text = line.partition(" ")
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > LONGEST_RECORD:
        return None
    try:
        document = _DOCUMENTS.decode(data)
        key = urlsafe_b64decode(f"{document.key}=")
        signed = urlsafe_b64decode(f"{signature}==")
        if len(key) != _KEY_BYTES or len(signed) != _SIGNATURE_BYTES:
            return None
        if not is_signed(key, signing_bytes(data), signed):
            return None
        return SharedWords(
            content=require_id("content", ContentId(document.content), CONTENT),
            digest=Digest(document.digest),
            key=PublicKey(key.hex()),
            words=document.words,
            salt=None if document.salt is None else read_base64("salt", document.salt),
        )
    except (msgspec.DecodeError, InvalidValueError, ValueError, RecursionError):
        return None


def without_erased(lines: Iterable[str]) -> list[str]:
    """Return lines without words that the same key has erased, sorted and each once."""
    every = {line: read_words(line) for line in lines}
    gone = {(one.content, one.key) for one in every.values() if one is not None and one.words is None}
    return sorted(
        line
        for line, one in every.items()
        if one is not None and (one.words is None or (one.content, one.key) not in gone)
    )


def find_words(lines: Iterable[str], digest: str) -> list[SharedWords]:
    """Return the words behind a digest that are not erased."""
    found = (read_words(line) for line in without_erased(lines))
    return [one for one in found if one is not None and one.digest == digest and one.words is not None]


def _write(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
