"""A receipt as an in-toto Statement v1, and the bytes that DSSE signs.

The subject of a statement is the stream with the digest of the receipt before it: so what is signed is a chain.
"""

from typing import Final, Literal, Union

from msgspec import DecodeError, Struct, ValidationError, field, json

from batonpass.errors import InvalidValueError, VerificationError
from batonpass.model.ids import StreamId
from batonpass.model.receipt import ENVELOPES, Receipt, Signed
from batonpass.model.values import Digest
from batonpass.wire.canonical import digest, encode

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
_STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE: Final = "urn:batonpass:receipt:v0"
_BYTES_OR_NONE: Final = frozenset({bytes, type(None)})
_PAE: Final = b"DSSEv1 %d %s %%d " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode())


class _Sha256(Struct, frozen=True, forbid_unknown_fields=True):
    sha256: Digest


class _Subject(Struct, frozen=True, forbid_unknown_fields=True):
    name: StreamId
    digest: _Sha256


class _Statement(Struct, frozen=True, forbid_unknown_fields=True):
    subject: tuple[_Subject]
    predicate: Union[tuple(ENVELOPES.values())]  # type: ignore[valid-type]  # noqa: UP007 - made from the list of kinds
    type: Literal["https://in-toto.io/Statement/v1"] = field(name="_type", default=_STATEMENT_TYPE)
    predicate_type: Literal["urn:batonpass:receipt:v0"] = field(name="predicateType", default=_PREDICATE_TYPE)


# At import and not at first use: two threads that made it at once have crashed the interpreter.
_decode: Final = json.Decoder(_Statement).decode


def encode_statement(stream: str, previous: str, receipt: Receipt) -> bytes:
    """Return the canonical bytes of a receipt in its place. Raises `InvalidValueError` if nobody could read them."""
    # Read again, because a name that is too long would be signed, and break its stream for every reader, for good.
    try:
        payload = encode(_Statement((_Subject(stream, _Sha256(previous)),), receipt))
        _decode(payload)
    except (ValidationError, UnicodeEncodeError) as error:
        raise InvalidValueError(f"this cannot be recorded: {error}") from None
    return payload


def pre_authentication(payload: bytes) -> bytes:
    """Return what DSSE signs for this payload."""
    return _PAE % len(payload) + payload


def read_signed(payload: bytes, signature: bytes, cosignature: bytes | None, contents: bytes | None) -> Signed:
    """Return a stored receipt. Raises `VerificationError` unless its bytes are a statement in canonical form."""
    # A database may be made to keep any type in any column.
    if not (type(payload) is type(signature) is bytes and {type(cosignature), type(contents)} <= _BYTES_OR_NONE):
        raise VerificationError("its columns are not bytes", code="verify.bytes")
    try:
        statement = _decode(payload)
    except ValidationError as error:
        raise VerificationError(f"not a receipt of this version: {error}", code="verify.bytes") from None
    except (DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise VerificationError(f"not JSON: {error}", code="verify.bytes") from None
    if encode(statement) != payload:
        raise VerificationError("not canonical bytes", code="verify.bytes")
    (subject,) = statement.subject
    return Signed(
        stream=subject.name,
        previous=subject.digest.sha256,
        receipt=statement.predicate,
        payload=payload,
        digest=digest(payload),
        signature=signature,
        cosignature=cosignature,
        contents=contents,
    )
