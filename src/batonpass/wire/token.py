"""Chains and proofs as text that a client sends with a call, small enough for a header.

    token  = chain "." proof
    chain  = base64url(check || zlib(part*))    check = the first 16 bytes of sha256 over the rest
    proof  = base64url(part)
    part   = length of the payload, 4 bytes, big-endian || payload || signature, 64 bytes

The chain stays the same as long as its certificate, so a verifier can remember a verified chain by its text. Only the
proof is new in each call. The check finds every damaged bit, also those that unpacking would ignore. It proves nothing:
the signatures do. Functions here raise `GrantMalformedError`, `GrantTooLargeError` or `GrantVersionError`.
"""

import zlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from batonpass.errors import GrantMalformedError, GrantTooLargeError
from batonpass.model.grants.grant import (
    Certificate,
    Chain,
    Proof,
    RelayEnrolment,
    Revocations,
    Signed,
    Statement,
    Terms,
)
from batonpass.model.ledger.receipt import SIGNATURE_BYTES
from batonpass.wire.canonical import digest
from batonpass.wire.grant_statements import Kind, decode_statement, kind_of

HEADER: Final = "Batonpass-Grant"
LONGEST_TOKEN: Final = 8_000  # characters; servers accept 8 KiB for one header, its name included
LONGEST_LIST: Final = 4 * 1024 * 1024
_MOST_BYTES: Final = 64 * 1024  # of an unpacked chain
_MOST_LIST_BYTES: Final = 8 * 1024 * 1024
_MOST_PARTS: Final = 80
_LENGTH_BYTES: Final = 4
_CHECK_BYTES: Final = 16
_NOT_BASE64: Final = "the grant is not spelled in base64url; send it as it was given"
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = bytes.maketrans(b"-_+/=", b"+/!!!")  # refuses the standard alphabet, and padding


def encode_chain(chain: Chain) -> str:
    """Return a chain as text. Raises `GrantTooLargeError` if it alone is longer than a token may be."""
    text = _packed([*chain.enrolments, *chain.terms, chain.certificate])
    return _require_short(text)


def decode_chain(text: str) -> Chain:
    """Return the chain in a text, unverified."""
    parts = list(_unpacked(_require_short(text), _MOST_BYTES))
    kinds = [kind_of(payload) for payload, _ in parts]
    enrolled, agreed = kinds.count(RelayEnrolment), kinds.count(Terms)
    if [RelayEnrolment] * enrolled + [Terms] * agreed + [Certificate] != kinds or not enrolled or not agreed:
        raise GrantMalformedError("the grant is not enrolments, then terms, then one certificate; ask for a new one")
    return Chain(
        enrolments=tuple(_signed(part, RelayEnrolment) for part in parts[:enrolled]),
        terms=tuple(_signed(part, Terms) for part in parts[enrolled:-1]),
        certificate=_signed(parts[-1], Certificate),
    )


def encode_proof(proof: Signed[Proof]) -> str:
    """Return a proof as text."""
    return _to_text(_framed(proof))


def decode_proof(text: str) -> Signed[Proof]:
    """Return the proof in a text, unverified."""
    (part, *more) = _parts(_from_text(_require_short(text)))
    if more:
        raise GrantMalformedError("the grant has more than one proof; send one for each call")
    return _signed(part, Proof)


def encode_part(part: Signed[Statement]) -> bytes:
    """Return one signed statement as the bytes that are kept as content of a receipt."""
    return _framed(part)


def decode_part(data: bytes, kind: type[Kind]) -> Signed[Kind]:
    """Return the one signed statement in kept bytes, of the given kind and unverified."""
    (part, *more) = _parts(data)
    if more:
        raise GrantMalformedError("more than one statement was kept where one belongs; run `batonpass ledger verify`")
    return _signed(part, kind)


def join_token(chain: str, proof: str) -> str:
    """Return the value of the header. Raises `GrantTooLargeError`."""
    return _require_short(f"{chain}.{proof}")


def split_token(token: str) -> tuple[str, str]:
    """Return the texts of chain and proof. Raises `GrantMalformedError` and `GrantTooLargeError`."""
    chain, dot, proof = _require_short(token).partition(".")
    if not dot or not chain or not proof:
        raise GrantMalformedError(f"the {HEADER} header is not a chain, a dot and a proof; send both")
    return chain, proof


def encode_revocations(revocations: Signed[Revocations], enrolments: Iterable[Signed[RelayEnrolment]] = ()) -> str:
    """Return a list of revocations as text.

    If a relay signed the list and not the root key, give that relay's enrolment too.
    """
    return _packed([*enrolments, revocations])


def decode_revocations(text: str) -> tuple[tuple[Signed[RelayEnrolment], ...], Signed[Revocations]]:
    """Return the list in a text and the enrolments with it, unverified."""
    if len(text) > LONGEST_LIST:
        raise GrantTooLargeError(f"the list of revocations has {len(text):,} characters; {LONGEST_LIST:,} are read")
    *enrolments, revocations = _unpacked(text, _MOST_LIST_BYTES)
    return tuple(_signed(part, RelayEnrolment) for part in enrolments), _signed(revocations, Revocations)


def _packed(parts: Iterable[Signed[Statement]]) -> str:
    packed = zlib.compress(b"".join(map(_framed, parts)), level=9)
    return _to_text(_check(packed) + packed)


def _unpacked(text: str, most: int) -> Iterator[tuple[bytes, bytes]]:
    data = _from_text(text)
    check, packed = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
    if check != _check(packed):
        raise GrantMalformedError("the grant was damaged on its way; send it again")
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(packed, most)
    except zlib.error:
        raise GrantMalformedError("the grant is not packed as it should be; ask for a new one") from None
    if not unpacking.eof and len(unpacked) >= most:
        raise GrantTooLargeError(f"the grant has more than {most:,} bytes; shorten its chain or its scopes")
    if not unpacking.eof or unpacking.unused_data:
        raise GrantMalformedError("the grant ends too early or too late; ask for a new one")
    return _parts(unpacked)


def _check(data: bytes) -> bytes:
    return sha256(data).digest()[:_CHECK_BYTES]


def _framed(part: Signed[Statement]) -> bytes:
    return len(part.payload).to_bytes(_LENGTH_BYTES) + part.payload + part.signature


def _parts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at, count = 0, 0
    length = len(data)
    while at < length or not count:
        begin = at + _LENGTH_BYTES
        end = begin + int.from_bytes(data[at:begin])
        at, count = end + SIGNATURE_BYTES, count + 1
        if at > length or count > _MOST_PARTS:
            raise GrantMalformedError("the parts of the grant do not fit into it; ask for a new one")
        yield data[begin:end], data[end:at]


def _signed(part: tuple[bytes, bytes], kind: type[Kind]) -> Signed[Any]:
    payload, signature = part
    return Signed(decode_statement(payload, kind), payload, signature, digest(payload))


def _to_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    tail = -len(text) % 4
    try:
        data = a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"=" * tail, strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        raise GrantMalformedError(_NOT_BASE64) from None
    # Unused bits at the end must be as they were encoded, so that each grant has exactly one text.
    if tail and _to_text(data[-(3 - tail) :]) != text[tail - 4 :]:
        raise GrantMalformedError(_NOT_BASE64)
    return data


def _require_short(text: str) -> str:
    if len(text) > LONGEST_TOKEN:
        raise GrantTooLargeError(
            f"the grant has {len(text):,} characters and {LONGEST_TOKEN:,} are sent; shorten its chain or its scopes"
        )
    return text
