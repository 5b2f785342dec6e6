"""Receipts as bytes: an in-toto Statement v1 in canonical JSON, signed as DSSE.

Only known fields are written. Reading is tolerant: a receipt is verified by its stored bytes, which may have fields
that this version does not know. Those are kept in the bytes and not interpreted.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, get_args

import msgspec

from batonpass.errors import InvalidValueError, UnknownFieldError
from batonpass.model.base.ids import Digest, KeyId, ReceiptId, RelayId, RunId, SessionId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body, UnknownBody
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import SIGNATURE_BYTES, Receipt, SignedReceipt, StoredReceipt
from batonpass.wire.canonical import digest, encode_typed, read_base64, write_base64
from batonpass.wire.versions import PREDICATE_TYPE, STATEMENT_TYPE, require_known_version

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_UNKNOWN_FIELD: Final = re.compile("unknown field `(.*?)`")
_PAE_HEAD: Final = b"DSSEv1 %d %s " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode())
_BODIES: Final[Mapping[str, type[Body]]] = {body.kind: body for body in get_args(Body) if body is not UnknownBody}


class _Subject(msgspec.Struct):
    name: StreamId
    digest: dict[str, Digest]


class _Recorder(msgspec.Struct):
    relay: RelayId
    key: KeyId


class _Predicate(msgspec.Struct):
    id: ReceiptId
    kind: str
    seq: int
    epoch: int
    at: datetime
    mode: Mode
    recorder: _Recorder
    body: msgspec.Raw
    cosigner: KeyId | None = None
    root: RunId | None = None
    session: SessionId | None = None
    content: dict[str, ContentRef] = {}


class _Statement(msgspec.Struct):
    type: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")
    subject: list[_Subject]
    predicate: msgspec.Raw


class _WholeStatement(msgspec.Struct):
    """A statement of the version that we write, decoded in one pass."""

    type: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")
    subject: list[_Subject]
    predicate: _Predicate


class _WrittenPredicate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The predicate of a receipt as it is written. Fields with default values are left out, in bodies too."""

    id: ReceiptId
    kind: str
    seq: int
    epoch: int
    at: datetime
    mode: Mode
    recorder: _Recorder
    body: Body
    cosigner: KeyId | None = None
    root: RunId | None = None
    session: SessionId | None = None
    content: Mapping[str, ContentRef] = {}


class _WrittenStatement(msgspec.Struct, frozen=True, kw_only=True):
    type: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")
    subject: tuple[_Subject, ...]
    predicate: _WrittenPredicate


class _Signature(msgspec.Struct, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    payload: str
    payload_type: str = msgspec.field(name="payloadType")
    signatures: list[_Signature]


_WHOLE: Final = msgspec.json.Decoder(_WholeStatement)
_STATEMENTS: Final = msgspec.json.Decoder(_Statement)
_PREDICATES: Final = msgspec.json.Decoder(_Predicate)
_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)
_BODY_DECODERS: Final = {kind: msgspec.json.Decoder(body) for kind, body in _BODIES.items()}


def encode_receipt(receipt: Receipt) -> bytes:
    """Return the canonical bytes of a receipt. They are signed, stored and chained, and never encoded again.

    Raises `InvalidValueError` for a body of an unknown kind.
    """
    body = receipt.body
    if isinstance(body, UnknownBody):
        raise InvalidValueError("body", f"{body.kind} is of a newer version and cannot be written")
    return encode_typed(
        _WrittenStatement(
            type=STATEMENT_TYPE,
            predicate_type=PREDICATE_TYPE,
            subject=(_Subject(name=receipt.stream, digest={"sha256": receipt.previous}),),
            predicate=_WrittenPredicate(
                id=receipt.id,
                kind=body.kind,
                seq=receipt.seq,
                epoch=receipt.epoch,
                at=receipt.at,
                mode=receipt.mode,
                recorder=_Recorder(relay=receipt.relay, key=receipt.relay_key),
                body=body,
                cosigner=receipt.cosigner,
                root=receipt.root,
                session=receipt.session,
                content=receipt.content,
            ),
        ),
    )


def told_in_full(body: Body) -> dict[str, Any]:
    """Return a body as JSON with all fields, defaults included. It is for readers, and is never signed."""
    return {name: _in_full(part) for name, part in msgspec.structs.asdict(body).items()}


def _in_full(value: object) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, msgspec.Struct):
        return {name: _in_full(part) for name, part in msgspec.structs.asdict(value).items()}
    return [_in_full(part) for part in value] if isinstance(value, tuple) else msgspec.to_builtins(value)


def decode_receipt(payload: bytes) -> Receipt:
    """Return the receipt in signed bytes. The signature is not checked here.

    Raises `NewerVersionError` for a format of a later version, and `InvalidValueError` with the field otherwise.
    """
    try:
        subjects, predicate = _decode_statement(payload)
        decoder = _BODY_DECODERS.get(predicate.kind)
        body = UnknownBody(predicate.kind) if decoder is None else decoder.decode(predicate.body)
        (subject,) = subjects
        previous = subject.digest["sha256"]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValueError("payload", str(error)) from None
    except (KeyError, ValueError):
        raise InvalidValueError("subject", "is not exactly one stream with its previous sha256 digest") from None
    return Receipt(
        id=predicate.id,
        stream=subject.name,
        seq=predicate.seq,
        previous=previous,
        epoch=predicate.epoch,
        at=predicate.at,
        mode=predicate.mode,
        relay=predicate.recorder.relay,
        relay_key=predicate.recorder.key,
        cosigner=predicate.cosigner,
        root=predicate.root,
        session=predicate.session,
        body=body,
        content=predicate.content,
    )


def _decode_statement(payload: bytes) -> tuple[list[_Subject], _Predicate]:
    try:
        whole = _WHOLE.decode(payload)
    except msgspec.DecodeError:
        # It may be of another version, whose predicate we do not know. Then the version is the problem to report, and
        # not the first field that does not fit. So it is decoded in two steps, and the version is checked in between.
        statement = _STATEMENTS.decode(payload)
        require_known_version(statement.type, statement.predicate_type)
        return statement.subject, _PREDICATES.decode(statement.predicate)
    if whole.type != STATEMENT_TYPE or whole.predicate_type != PREDICATE_TYPE:
        require_known_version(whole.type, whole.predicate_type)
    return whole.subject, whole.predicate


def signing_bytes(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: the bytes that a signature covers."""
    return b"%s%d %s" % (_PAE_HEAD, len(payload), payload)


def encode_envelope(stored: StoredReceipt | SignedReceipt, receipt: Receipt) -> dict[str, Any]:
    """Return a receipt as a DSSE envelope, which any in-toto tool can read."""
    signatures = [(receipt.relay_key, stored.relay_signature)]
    if receipt.cosigner is not None and stored.cosignature is not None:
        signatures.append((receipt.cosigner, stored.cosignature))
    return {
        "payload": write_base64(stored.payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key, "sig": write_base64(signature)} for key, signature in signatures],
    }


def decode_envelope(data: bytes) -> SignedReceipt:
    """Return the receipt in a DSSE envelope, unverified. Raises `InvalidValueError`."""
    try:
        envelope = _ENVELOPES.decode(data)
    except msgspec.DecodeError as error:
        raise refused("envelope", error) from None
    except (ValueError, RecursionError) as error:
        raise InvalidValueError("envelope", str(error)) from None
    payload = read_base64("envelope", envelope.payload)
    signatures = [(signed.keyid, read_base64("envelope", signed.sig)) for signed in envelope.signatures]
    if envelope.payload_type != PAYLOAD_TYPE:
        raise InvalidValueError("payloadType", f"is not {PAYLOAD_TYPE}")
    receipt = decode_receipt(payload)
    named = [receipt.relay_key] if receipt.cosigner is None else [receipt.relay_key, receipt.cosigner]
    if named != [key for key, _ in signatures] or any(len(signed) != SIGNATURE_BYTES for _, signed in signatures):
        raise InvalidValueError("signatures", "are not those of the keys that the receipt names, in that order")
    return SignedReceipt(
        receipt=receipt,
        payload=payload,
        digest=digest(payload),
        relay_signature=signatures[0][1],
        cosignature=signatures[1][1] if receipt.cosigner is not None else None,
    )


def refused(field: str, error: msgspec.DecodeError) -> InvalidValueError:
    """Return the error for a refused input. If the input has an unknown field, the error names it."""
    if (unknown := _UNKNOWN_FIELD.search(str(error))) is not None:
        return UnknownFieldError(f"{field}.{unknown[1]}")
    return InvalidValueError(field, str(error))


def known_kind(kind: str) -> bool:
    """Return whether this version knows a kind of receipt."""
    return kind in _BODIES
