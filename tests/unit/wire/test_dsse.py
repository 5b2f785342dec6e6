"""Envelopes: other people's tools verify ours, and we take nothing that we did not ask for."""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from msgspec.structs import replace
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import Key, SSlibKey  # type: ignore[attr-defined]

from batonpass.errors import InvalidValueError
from batonpass.model.bodies.body import Kind
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.receipt_codec import PAYLOAD_TYPE, decode_envelope, encode_envelope, signing_bytes
from tests.unit.wire.signed import NEXT, RELAY, ROOT, RUN, cosigner_of, receipt_of, sign

Edit = Callable[[dict[str, Any]], object]


def exported(kind: Kind = Kind.RUN_STARTED) -> dict[str, Any]:
    """Return the envelope of an example as a reader gets it: from JSON."""
    signed = sign(receipt_of(kind))
    return dict(json.loads(json.dumps(encode_envelope(signed, signed.receipt))))


def their_key(signer: Ed25519Signer) -> Key:
    """Return a public key as securesystemslib takes it."""
    return SSlibKey(signer.key, "ed25519", "ed25519", {"public": signer.public_key})


def signers_of(kind: Kind) -> list[Ed25519Signer]:
    """Return who signs a kind of receipt."""
    cosigner = cosigner_of(kind)
    return [RELAY] if cosigner is None else [RELAY, cosigner]


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_securesystemslib_verifies_what_we_export(kind: Kind) -> None:
    """Every signature on an exported receipt is good for a tool that knows nothing of us."""
    keys = [their_key(signer) for signer in signers_of(kind)]
    envelope = Envelope.from_dict(exported(kind))

    assert {key.keyid for key in keys} == envelope.verify(keys, len(keys)).keys()


def test_they_sign_the_same_bytes() -> None:
    """Our pre-authentication encoding is theirs."""
    envelope = Envelope.from_dict(exported())

    assert envelope.pae() == signing_bytes(envelope.payload)


@pytest.mark.parametrize("position", [0, 100, -1], ids="with byte {} flipped".format)
def test_securesystemslib_refuses_what_was_flipped(position: int) -> None:
    """One flipped bit, and nobody's signature is good any more."""
    envelope = Envelope.from_dict(exported())
    payload = bytearray(envelope.payload)
    payload[position] ^= 1
    envelope.payload = bytes(payload)

    with pytest.raises(VerificationError, match="Found: 0"):
        envelope.verify([their_key(RELAY), their_key(RUN)], 1)


def test_securesystemslib_refuses_another_key() -> None:
    """A signature is good for the key that made it and for no other that is passed off under its id."""
    other = SSlibKey(RELAY.key, "ed25519", "ed25519", {"public": NEXT.public_key})

    with pytest.raises(VerificationError, match="Found: 0"):
        Envelope.from_dict(exported()).verify([other], 1)


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_in_toto_reads_our_payload_as_a_statement(kind: Kind) -> None:
    """The payload is a valid in-toto Statement v1, for in-toto's own classes."""
    statement = Statement.copy_from_pb(Parse(sign(receipt_of(kind)).payload, StatementMessage()))
    statement.validate()

    assert "urn:batonpass:receipt:v0" == statement.pb.predicate_type
    assert [receipt_of(kind).stream] == [subject.name for subject in statement.pb.subject]
    assert kind == statement.pb.predicate["kind"]


@pytest.mark.parametrize("kind", Kind, ids="a {} receipt".format)
def test_an_envelope_comes_back_as_it_was(kind: Kind) -> None:
    """What we export we read again, byte for byte."""
    assert sign(receipt_of(kind)) == decode_envelope(json.dumps(exported(kind)).encode())


def test_an_envelope_has_three_fields() -> None:
    """Payload, type and signatures; the signatures in the order relay, cosigner."""
    envelope = exported()

    assert {"payload", "payloadType", "signatures"} == envelope.keys()
    assert PAYLOAD_TYPE == envelope["payloadType"]
    assert [RELAY.key, RUN.key] == [signature["keyid"] for signature in envelope["signatures"]]


def signature_of(signer: Ed25519Signer) -> dict[str, str]:
    """Return a signature line by somebody whom the receipt does not name."""
    return {"keyid": signer.key, "sig": b64encode(signer.sign(b"anything")).decode()}


REFUSED: list[Any] = [
    pytest.param(lambda e: e.update(extra=1), "envelope.extra", id="an unknown field"),
    pytest.param(lambda e: e["signatures"][0].update(cert="x"), "envelope.cert", id="an unknown field of a signature"),
    pytest.param(lambda e: e.pop("payload"), "envelope", id="no payload"),
    pytest.param(lambda e: e.pop("payloadType"), "envelope", id="no type"),
    pytest.param(lambda e: e.update(payloadType="application/json"), "payloadType", id="another type"),
    pytest.param(lambda e: e.update(payload=e["payload"][:-2]), "envelope", id="broken base64"),
    pytest.param(lambda e: e.update(payload="é" + e["payload"]), "envelope", id="text that is not base64"),
    pytest.param(lambda e: e.update(payload=b64encode(b"{}").decode()), "payload", id="a payload that is no receipt"),
    pytest.param(lambda e: e.update(signatures=[]), "signatures", id="no signatures"),
    pytest.param(lambda e: e["signatures"].pop(0), "signatures", id="the relay's signature missing"),
    pytest.param(lambda e: e["signatures"].pop(1), "signatures", id="the cosigner's signature missing"),
    pytest.param(lambda e: e["signatures"].append(signature_of(ROOT)), "signatures", id="a signature too many"),
    pytest.param(lambda e: e["signatures"].append(signature_of(RELAY)), "signatures", id="two by the relay"),
    pytest.param(lambda e: e["signatures"].append(signature_of(RUN)), "signatures", id="two by the cosigner"),
    pytest.param(lambda e: e["signatures"][0].update(keyid=ROOT.key), "signatures", id="a signature by another"),
    pytest.param(lambda e: e["signatures"][0].update(sig="AAAA"), "signatures", id="the relay's is too short"),
    pytest.param(lambda e: e["signatures"][1].update(sig="AAAA"), "signatures", id="the cosigner's is too short"),
    pytest.param(
        lambda e: e["signatures"][0].update(sig=e["signatures"][0]["sig"][:-3] + "h=="),
        "envelope",
        id="a signature with bits that no byte needs",
    ),
    pytest.param(
        lambda e: e.update(payload=e["payload"][:8] + "\n" + e["payload"][8:]), "envelope", id="a payload in lines"
    ),
    pytest.param(lambda e: e["signatures"][0].update(sig="!"), "envelope", id="a signature that is not base64"),
]


@pytest.mark.parametrize(("edit", "field"), REFUSED)
def test_an_envelope_is_closed(edit: Edit, field: str) -> None:
    """Anything that is missing, surplus or unknown is refused, and the part is named."""
    envelope = exported()
    edit(envelope)

    with pytest.raises(InvalidValueError) as refused:
        decode_envelope(json.dumps(envelope).encode())

    assert field == refused.value.field


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{}"], ids="the bytes {!r}".format)
def test_what_is_not_an_envelope_is_refused(data: bytes) -> None:
    """Other JSON, or none, is refused as such."""
    with pytest.raises(InvalidValueError) as refused:
        decode_envelope(data)

    assert "envelope" == refused.value.field


def test_an_envelope_of_a_kind_that_needs_no_cosigner_has_one_signature() -> None:
    """An offer is signed by the relay alone."""
    signed = sign(receipt_of(Kind.HANDOFF_INITIATED))

    assert signed.cosignature is None
    assert [RELAY.key] == [line["keyid"] for line in exported(Kind.HANDOFF_INITIATED)["signatures"]]


def test_a_cosignature_that_was_lost_is_not_made_up() -> None:
    """A store that lost the second signature exports one signature, and whoever imports it is told."""
    signed = replace(sign(receipt_of(Kind.RUN_STARTED)), cosignature=None)
    envelope = encode_envelope(signed, signed.receipt)

    assert [RELAY.key] == [line["keyid"] for line in envelope["signatures"]]
