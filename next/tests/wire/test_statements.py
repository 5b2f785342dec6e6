"""A receipt as bytes: what is signed can be read, and what is read was written by this encoder."""

import json
from typing import Any

import pytest
import rfc8785
from msgspec.structs import replace

from batonpass.errors import InvalidValueError, VerificationError
from batonpass.wire.statements import encode_statement, pre_authentication, read_signed

ZEROS = "0" * 26
DIGEST = "a" * 64
SIGNATURE = bytes(64)


def a_statement(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return the statement of a requested call, as the specification spells it, with changes to its predicate."""
    predicate = {
        "kind": "tool.requested",
        "id": f"receipt_{ZEROS}",
        "seq": 2,
        "epoch": 0,
        "at": 1_700_000_000_000_000,
        "mode": "observed",
        "recorder": f"relay_{ZEROS}",
        "root": f"run_{ZEROS}",
        "body": {"run": f"run_{ZEROS}", "call": f"call_{ZEROS}", "key": DIGEST, "tool": "search"},
        "content": {"action": DIGEST, "arguments": DIGEST, "target": DIGEST},
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "urn:batonpass:receipt:v0",
        "subject": [{"name": f"run_{ZEROS}", "digest": {"sha256": DIGEST}}],
        "predicate": predicate | changes,
    }


def test_a_statement_is_read_and_written_as_the_same_bytes() -> None:
    """Bytes that an RFC 8785 encoder makes of the specified JSON are what we read and what we write."""
    payload = rfc8785.dumps(a_statement())

    signed = read_signed(payload, SIGNATURE, None, None)

    assert payload == encode_statement(signed.stream, signed.previous, signed.receipt)
    assert (f"run_{ZEROS}", DIGEST, "tool.requested") == (signed.stream, signed.previous, signed.receipt.kind)


def test_what_is_signed_is_the_pre_authentication_encoding_of_dsse() -> None:
    """DSSE signs the type and the payload, each with its length in bytes."""
    assert b"DSSEv1 28 application/vnd.in-toto+json 3 a b" == pre_authentication(b"a b")


def body(**changes: object) -> dict[str, object]:
    return {**a_statement()["predicate"]["body"], **changes}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"extra": 1}, id="an unknown field of the envelope"),
        pytest.param({"kind": "tool.dreamed"}, id="an unknown kind"),
        pytest.param({"seq": -1}, id="a negative number"),
        pytest.param({"at": 2**53}, id="an integer that other readers round"),
        pytest.param({"seq": True}, id="a truth value for a number"),
        pytest.param({"mode": "strict"}, id="an unknown mode"),
        pytest.param({"root": f"run_8{ZEROS[1:]}"}, id="an id of more than 128 bits"),
        pytest.param({"root": f"run_{ZEROS}\n"}, id="an id with a newline at its end"),
        pytest.param({"request": DIGEST + "\n"}, id="a digest with a newline at its end"),
        pytest.param({"body": body(key=DIGEST.upper())}, id="a digest in capitals"),
        pytest.param({"body": body(tool="")}, id="an empty name"),
        pytest.param({"body": body(tool="x" * 201)}, id="a name that is too long"),
        pytest.param({"body": body(result="leaked")}, id="an unknown field of the body"),
        pytest.param({"body": {"run": f"run_{ZEROS}"}}, id="a body that lacks what its kind has"),
    ],
)
def test_the_schema_is_closed(changes: dict[str, object]) -> None:
    """What the schema does not have is refused when it is read, whoever signed it."""
    payload = rfc8785.dumps(a_statement(**changes)) if changes != {"at": 2**53} else _with_large_integer()

    with pytest.raises(VerificationError) as refusal:
        read_signed(payload, SIGNATURE, None, None)

    assert "verify.bytes" == refusal.value.code


def _with_large_integer() -> bytes:
    return rfc8785.dumps(a_statement(at=7)).replace(b'"at":7', b'"at":9007199254740992')


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(json.dumps(a_statement(), separators=(",", ":")).encode(), id="keys in another order"),
        pytest.param(json.dumps(a_statement(), sort_keys=True).encode(), id="spaces"),
        pytest.param(rfc8785.dumps(a_statement()) + b" ", id="a space at the end"),
        pytest.param(rfc8785.dumps(a_statement()).replace(b'"search"', b'"\\u0073earch"'), id="an escape"),
        pytest.param(rfc8785.dumps(a_statement()).replace(b'"seq":2', b'"seq":2,"seq":2'), id="a key twice"),
        pytest.param(rfc8785.dumps(a_statement(epoch=0, content={})), id="a default that is written out"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"[" * 100_000, id="depth"),
        pytest.param(rfc8785.dumps(a_statement()).decode(), id="text in the column of bytes"),
        pytest.param(None, id="no value"),
        pytest.param(7, id="a number"),
    ],
)
def test_other_bytes_are_refused(payload: Any) -> None:  # noqa: ANN401 - what a damaged column holds
    """Each receipt has one spelling: what is not exactly that is refused, also if it says the same."""
    with pytest.raises(VerificationError) as refusal:
        read_signed(payload, SIGNATURE, None, None)

    assert "verify.bytes" == refusal.value.code


@pytest.mark.parametrize("columns", [("text", None, None), (SIGNATURE, 7, None), (SIGNATURE, None, "text")])
def test_other_types_beside_the_payload_are_refused(columns: Any) -> None:  # noqa: ANN401 - as above
    """Signatures and contents that are no bytes are refused before anything is done with them."""
    with pytest.raises(VerificationError):
        read_signed(rfc8785.dumps(a_statement()), *columns)


@pytest.mark.parametrize(
    ("field", "value"), [("tool", "x" * 201), ("tool", ""), ("run", "run_1"), ("key", "no digest"), ("tool", "\ud800")]
)
def test_what_could_not_be_read_is_not_signed(field: str, value: str) -> None:
    """A value that readers refuse is refused before it is signed: it would break its stream for good."""
    receipt = read_signed(rfc8785.dumps(a_statement()), SIGNATURE, None, None).receipt

    with pytest.raises(InvalidValueError):
        encode_statement(f"run_{ZEROS}", DIGEST, replace(receipt, body=replace(receipt.body, **{field: value})))
