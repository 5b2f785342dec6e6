"""The vectors in the repository, from their files alone: what was written once is read for as long as we exist."""

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import nacl.exceptions
import nacl.signing
import pytest

from batonpass.model.bodies.body import Kind
from batonpass.wire.receipt_codec import decode_envelope, decode_receipt, encode_receipt
from batonpass.wire.versions import PREDICATE_TYPE

VECTORS = Path(__file__).parents[2] / "vectors"
FILES = sorted(VECTORS.glob("v*/*.json"))
NEWEST = PREDICATE_TYPE.rpartition(":")[2]

every_vector = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.stem} in {path.parent.name}")


def read(path: Path) -> dict[str, Any]:
    """Return a vector."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_every_kind_has_its_vector() -> None:
    """There is one file for each kind of the present version."""
    assert {f"{kind}.json" for kind in Kind} == {path.name for path in FILES if path.parent.name == NEWEST}


@every_vector
def test_a_vector_says_what_it_is_of(path: Path) -> None:
    """Predicate and kind stand in the file's place, in the file and in the signed bytes."""
    vector = read(path)
    statement = json.loads(vector["payload"])

    assert f"urn:batonpass:receipt:{path.parent.name}" == vector["predicate"] == statement["predicateType"]
    assert path.stem == vector["kind"] == statement["predicate"]["kind"]


@every_vector
def test_the_digest_is_that_of_the_payload(path: Path) -> None:
    """The payload in words, the payload in the envelope and the digest are of the same bytes."""
    vector = read(path)
    payload = b64decode(vector["envelope"]["payload"], validate=True)

    assert vector["payload"].encode() == payload
    assert vector["digest"] == sha256(payload).hexdigest()


@every_vector
def test_every_signature_is_good(path: Path) -> None:
    """Each signature is that of the key it names, over DSSE's bytes; and would not be over others."""
    vector = read(path)
    payload = vector["payload"].encode()
    kind = vector["envelope"]["payloadType"].encode()
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    signatures = vector["envelope"]["signatures"]

    assert vector["keys"].keys() == {signature["keyid"] for signature in signatures}
    for signature in signatures:
        public = bytes.fromhex(vector["keys"][signature["keyid"]])
        assert signature["keyid"] == sha256(public).hexdigest()
        verifier = nacl.signing.VerifyKey(public)
        assert message == verifier.verify(message, b64decode(signature["sig"]))
        with pytest.raises(nacl.exceptions.BadSignatureError):
            verifier.verify(message + b" ", b64decode(signature["sig"]))


@every_vector
def test_a_vector_is_read_and_written_again_the_same(path: Path) -> None:
    """Today, the receipt is read, and would be written as the same bytes."""
    vector = read(path)
    payload = vector["payload"].encode()
    signed = decode_envelope(json.dumps(vector["envelope"]).encode())

    assert decode_receipt(payload) == signed.receipt
    assert (payload, vector["digest"]) == (signed.payload, signed.digest)
    assert payload == encode_receipt(signed.receipt)


@every_vector
def test_content_is_what_the_receipt_committed_to(path: Path) -> None:
    """Salt and body, in this order, have the digest that the signed bytes name."""
    vector = read(path)
    said = json.loads(vector["payload"])["predicate"]["content"]
    found = {
        name: sha256(b64decode(content["salt"]) + b64decode(content["body"])).hexdigest()
        for name, content in vector["contents"].items()
    }

    assert {name: ref["digest"] for name, ref in said.items()} == found
