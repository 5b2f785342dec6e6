"""Offline proof that a seal covers one receipt, as a c2sp.org/tlog-proof@v1 file."""

from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.merkle import HASH_LENGTH, leaf_hash, root_from_inclusion
from batonpass.ledger.note import Note, parse_note, read_decimal
from batonpass.wire.canonical import read_base64, write_base64

HEADER: Final = "c2sp.org/tlog-proof@v1"

_EXTRA: Final = "extra "
_INDEX: Final = "index "


class SealProof(Struct, frozen=True):
    """The path from one receipt up to the root of a seal, and the seal as it was issued."""

    index: int  # the receipt's position - 1
    hashes: tuple[bytes, ...]
    seal: str
    extra: bytes = b""  # data that nobody has signed; empty: none


def format_proof(proof: SealProof) -> str:
    """Return the text of a proof file. Raises `InvalidValueError` if it could not be read back."""
    head = [HEADER]
    if proof.extra:
        head.append(_EXTRA + write_base64(proof.extra))
    head.append(f"{_INDEX}{proof.index}")
    head.extend(write_base64(value) for value in proof.hashes)
    text = "\n".join([*head, "", proof.seal])
    parse_proof(text)
    return text


def parse_proof(text: str) -> SealProof:
    """Return the proof in a file. Neither the path nor a signature is checked here.

    Raises `InvalidValueError` with the part that is malformed.
    """
    head, separator, seal = text.partition("\n\n")
    header, *lines = head.split("\n")
    if header != HEADER:
        raise InvalidValueError("proof", f"the first line must be {HEADER}")
    if not separator:
        raise InvalidValueError("proof", "an empty line and a seal must follow the hashes")
    parse_note(seal)
    extra = b""
    if lines and lines[0].startswith(_EXTRA):
        extra = read_base64("extra", lines.pop(0).removeprefix(_EXTRA))
        if not extra:
            raise InvalidValueError("extra", "the line must be left out when there is nothing in it")
    if not lines or not lines[0].startswith(_INDEX):
        raise InvalidValueError("index", "the line is missing")
    index = read_decimal("index", lines.pop(0).removeprefix(_INDEX))
    hashes = tuple(read_base64("hash", line) for line in lines)
    if any(len(value) != HASH_LENGTH for value in hashes):
        raise InvalidValueError("hash", f"each must have {HASH_LENGTH} bytes")
    return SealProof(index, hashes, seal, extra)


def verify_proof(proof: SealProof, receipt_digest: bytes) -> Note:
    """Return the seal's note if its root commits to this receipt at this index.

    The caller must still check the note's signature: only the caller knows which relays are enrolled. Raises
    `InvalidValueError` if the path does not fit the size of the tree, and `SealError` if it leads to another root.
    """
    note = parse_note(proof.seal)
    root = root_from_inclusion(leaf_hash(receipt_digest), proof.index, note.checkpoint.size, proof.hashes)
    if root != note.checkpoint.root:
        raise SealError(f"the proof leads to the root {root.hex()}, the seal says {note.checkpoint.root.hex()}")
    return note
