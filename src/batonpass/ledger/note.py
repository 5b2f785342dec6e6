"""Seals as text: a transparency-log checkpoint in a C2SP signed note.

Any tool that reads c2sp.org/tlog-checkpoint reads our seals. We accept less than C2SP allows: the origin must follow
the rule for key names, and extension lines are refused, because our seals have none and nothing would check them. Each
note that is accepted has exactly one spelling. The specification is docs/spec/seal.md.
"""

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest
from batonpass.wire.canonical import read_base64, write_base64

MAX_SIZE: Final = 2**63 - 1
MAX_SIGNATURES: Final = 64

_ROOT_LENGTH: Final = 32
_KEY_HASH_LENGTH: Final = 4
_PUBLIC_KEY_LENGTH: Final = 32
_SIGNATURE_LENGTH: Final = 64
_ED25519: Final = b"\x01"
_DASH: Final = "\N{EM DASH} "
# At most 19 digits: `int` takes quadratic time, and the sender chooses the number of digits.
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_BODY_LINES: Final = 3
_TRAILER_PARTS: Final = 4


class Checkpoint(Struct, frozen=True):
    """The head of a ledger's Merkle tree: its origin, the number of receipts, and the root.

    Raises `InvalidValueError` for fields that could not be written and read back unchanged.
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        # With a newline in it, the origin could forge the two lines below.
        _require_name("origin", self.origin)
        if not 0 <= self.size <= MAX_SIZE:
            raise InvalidValueError("size", f"must be between 0 and {MAX_SIZE}")
        _require_length("root", self.root, _ROOT_LENGTH)

    def body(self) -> str:
        """Return the signed text: three lines, each with its newline."""
        return f"{self.origin}\n{self.size}\n{write_base64(self.root)}\n"


class NoteSignature(Struct, frozen=True):
    """One signature line of a note, not verified yet."""

    name: str
    key_hash: bytes
    signature: bytes


class Note(Struct, frozen=True):
    """A checkpoint and its signatures, parsed but not verified."""

    checkpoint: Checkpoint
    signatures: tuple[NoteSignature, ...]
    signed_bytes: bytes

    def find_signatures(self, name: str, public_key: bytes) -> Iterator[NoteSignature]:
        """Yield the signatures that claim to be made with this key. All of them must verify over `signed_bytes`."""
        wanted = key_hash(name, public_key)
        return (line for line in self.signatures if line.name == name and line.key_hash == wanted)


def key_hash(name: str, public_key: bytes) -> bytes:
    """Return the four bytes with which a note names an Ed25519 key. They identify the key, and prove nothing."""
    _require_name("name", name)
    _require_length("public key", public_key, _PUBLIC_KEY_LENGTH)
    return sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:_KEY_HASH_LENGTH]


def verifier_key(name: str, public_key: bytes) -> str:
    """Return the key in the form that other C2SP tools take."""
    return f"{name}+{key_hash(name, public_key).hex()}+{write_base64(_ED25519 + public_key)}"


class SealKey(Struct, frozen=True):
    """A public key of which somebody says that it may sign seals: of one ledger, or of any."""

    public_key: bytes
    origin: str | None = None

    @classmethod
    def parse(cls, text: str) -> "SealKey":
        """Return the key in a text: 64 hex digits, or the one line of `verifier_key`. Raises `InvalidValueError`."""
        if "+" not in text:
            return cls(bytes.fromhex(require_digest("key", text)))
        # The name has no plus sign, and base64 may have some.
        name, _, rest = text.partition("+")
        data = read_base64("key", rest.partition("+")[2])
        if data[:1] != _ED25519 or len(data) != 1 + _PUBLIC_KEY_LENGTH:
            raise InvalidValueError("key", "must be an Ed25519 key")
        if verifier_key(name, data[1:]) != text:
            raise InvalidValueError("key", "its hash is not that of its name and key")
        return cls(data[1:], name)


def sign_checkpoint(checkpoint: Checkpoint, sign: Callable[[bytes], bytes], name: str, public_key: bytes) -> str:
    """Return the whole note: the checkpoint, and below it the one signature that `sign` made.

    Raises `InvalidValueError` if the name, the key or the signature does not fit an Ed25519 signature line.
    """
    body = checkpoint.body()
    prefix = key_hash(name, public_key)
    signature = sign(body.encode())
    _require_length("signature", signature, _SIGNATURE_LENGTH)
    return f"{body}\n{_DASH}{name} {write_base64(prefix + signature)}\n"


def parse_note(text: str) -> Note:
    """Return the note in a text. No signature is checked here.

    Raises `InvalidValueError` with the part that is malformed.
    """
    *lines, after = text.split("\n")
    if after:
        raise InvalidValueError("note", "must end with a newline")
    if len(lines) <= _BODY_LINES + 1 or lines[_BODY_LINES]:
        raise InvalidValueError("note", "must be origin, size, root, one empty line and at least one signature")
    origin, size, root = lines[:_BODY_LINES]
    signatures = lines[_BODY_LINES + 1 :]
    if len(signatures) > MAX_SIGNATURES:
        raise InvalidValueError("signatures", f"at most {MAX_SIGNATURES} are read, here are {len(signatures)}")
    checkpoint = Checkpoint(origin, read_decimal("size", size), read_base64("root", root))
    return Note(
        checkpoint=checkpoint,
        signatures=tuple(_parse_signature(line) for line in signatures),
        signed_bytes="".join(f"{line}\n" for line in lines[:_BODY_LINES]).encode(),
    )


def to_trailer(text: str) -> str:
    """Return the note as one line of four words, for a git trailer. `from_trailer` returns the same note again.

    Raises `InvalidValueError` unless the note has exactly one signature, whose name is the origin.
    """
    note = parse_note(text)
    if [line.name for line in note.signatures] != [note.checkpoint.origin]:
        raise InvalidValueError("signatures", "a trailer has room for exactly one, whose name is the origin")
    origin, size, root, _, signature, _ = text.split("\n")
    return f"{origin} {size} {root} {signature.rpartition(' ')[2]}"


def from_trailer(line: str) -> str:
    """Return the note from which `to_trailer` made this line.

    Raises `InvalidValueError` if `to_trailer` could not have made it.
    """
    parts = line.split(" ")
    if len(parts) != _TRAILER_PARTS:
        raise InvalidValueError("trailer", "must be origin, size, root and signature with one space between them")
    origin, size, root, signature = parts
    text = f"{origin}\n{size}\n{root}\n\n{_DASH}{origin} {signature}\n"
    parse_note(text)
    return text


def read_decimal(field: str, text: str) -> int:
    """Return the number, at most 2^63 - 1. Raises `InvalidValueError` for signs, spaces and leading zeros."""
    if not _DECIMAL.fullmatch(text) or (value := int(text)) > MAX_SIZE:
        raise InvalidValueError(field, f"must be decimal digits without leading zeros, at most {MAX_SIZE}")
    return value


def _parse_signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise InvalidValueError("signature", "must be an em dash, a space, a name, a space and base64")
    _require_name("signature name", name)
    data = read_base64("signature", encoded)
    if len(data) <= _KEY_HASH_LENGTH:
        raise InvalidValueError("signature", "is too short for a key hash and a signature")
    return NoteSignature(name, data[:_KEY_HASH_LENGTH], data[_KEY_HASH_LENGTH:])


def _require_name(field: str, name: str) -> None:
    if not name:
        raise InvalidValueError(field, "must not be empty")
    # C2SP forbids the controls below U+0020. We also forbid delete and the C1 controls, which some terminals obey, and
    # lone surrogates, which are not UTF-8.
    if any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in name):
        raise InvalidValueError(field, "must not contain control characters or surrogates")
    if any(char.isspace() or char == "+" for char in name):
        raise InvalidValueError(field, "must not contain spaces or plus signs")


def _require_length(field: str, value: bytes, length: int) -> None:
    if len(value) != length:
        raise InvalidValueError(field, f"must have {length} bytes, has {len(value)}")
