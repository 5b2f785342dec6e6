"""A program signs what it asked for, and nothing else, whatever a server wants."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from batonpass import tool
from batonpass.client.connection import RemoteReply
from batonpass.errors import SigningRefusedError
from batonpass.model.base.ids import RunId, new_call_id
from batonpass.model.bodies.body import Outcome, RunClosed
from batonpass.model.ledger.content import content_digest
from batonpass.model.ledger.receipt import Receipt
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.wire.receipt_codec import decode_receipt, encode_receipt, signing_bytes
from tests.unit.client.conftest import ANA, Place

Told = dict[str, Any]
ANOTHER = "run_01h455vb4pex5vsknk084sn02q"


@tool("pay", target="to", action="call")
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


def payload_of(told: Told) -> bytes:
    """Return the bytes of the receipt that is to be signed."""
    return b64decode(told["message"]).partition(b" {")[2].join([b"{", b""])


def with_receipt(told: Told, change: Callable[[Receipt], Receipt]) -> Told:
    """Return another receipt in place of the one that was asked for."""
    receipt = change(decode_receipt(payload_of(told)))
    return {**told, "message": b64encode(signing_bytes(encode_receipt(receipt))).decode()}


def with_body(told: Told, **parts: str) -> Told:
    """Return the same receipt with something else in its body."""

    def change(receipt: Receipt) -> Receipt:
        changed = msgspec.structs.replace(receipt.body, **parts)
        return msgspec.structs.replace(receipt, body=changed)

    return with_receipt(told, change)


def with_content(told: Told, name: str, body: bytes) -> Told:
    """Return other words, with a receipt that commits to them."""
    contents = [{**one, "body": b64encode(body).decode()} if one["name"] == name else one for one in told["contents"]]
    salt = b64decode(next(one["salt"] for one in told["contents"] if one["name"] == name))

    def change(receipt: Receipt) -> Receipt:
        ref = msgspec.structs.replace(receipt.content[name], digest=content_digest(salt, body), size=len(body))
        return msgspec.structs.replace(receipt, content={**receipt.content, name: ref})

    return {**with_receipt(told, change), "contents": contents}


def closed(receipt: Receipt) -> Receipt:
    """Return the end of a run in the place of a receipt."""
    end = RunClosed(run=RunId(receipt.stream), outcome=Outcome.COMPLETED)
    return msgspec.structs.replace(receipt, body=end, content={})


def closing(told: Told) -> Told:
    """Return the end of the run in place of a call."""
    return {**with_receipt(told, closed), "contents": []}


def hidden(told: Told) -> Told:
    """Return the same receipt with a field that nobody knows."""
    document = json.loads(payload_of(told))
    document["predicate"]["more"] = "pay mallory"
    payload = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return {**told, "message": b64encode(signing_bytes(payload)).decode()}


def elsewhere(receipt: Receipt) -> Receipt:
    """Return a receipt in another stream."""
    body = msgspec.structs.replace(receipt.body, run=ANOTHER)
    return msgspec.structs.replace(receipt, stream=ANOTHER, body=body)


LIES: dict[str, tuple[Callable[[Told], Told], str]] = {
    "another tool": (lambda told: with_body(told, tool="erase"), "another tool"),
    "other arguments": (
        lambda told: with_content(told, "arguments", b'{"arguments":{"amount":1000,"to":"mallory"},"tool":"pay"}'),
        "other arguments",
    ),
    "words that are not shown": (lambda told: {**told, "contents": []}, "not shown"),
    "other words than are shown": (
        lambda told: {
            **told,
            "contents": [{**one, "body": b64encode(b"{}").decode()} for one in told["contents"]],
        },
        "than is shown",
    ),
    "the end of the run": (closing, "run.closed, which no such act makes"),
    "another run": (lambda told: with_receipt(told, elsewhere), "not this run"),
    "a field that nobody knows": (hidden, "does not know"),
    "no receipt at all": (
        lambda told: {**told, "message": b64encode(b"batonpass run proof v1\nx\ny\n").decode(), "contents": []},
        "neither a receipt nor a ruling",
    ),
    "another key": (lambda told: {**told, "key": Ed25519Signer.generate().public_key}, "not this run"),
    "nonsense": (lambda _: {"act": 1}, "cannot be read"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_gets_no_signature_for(place: Place, lie: str) -> None:
    """The program refuses, says why, and nothing is recorded."""
    change, why = LIES[lie]
    relay = place.elsewhere()
    run = relay.start("Pay the bill", by=ANA)
    before = place.kinds()

    def after(path: str, reply: RemoteReply) -> RemoteReply:
        if reply.status != 202 or not path.endswith("/calls"):
            return reply
        return RemoteReply(status=202, body=json.dumps(change(json.loads(reply.body))).encode())

    relay.wire.after = after
    with pytest.raises(SigningRefusedError, match=why):
        run.call(pay, "ben", 10)

    assert before == place.kinds()


def test_a_place_is_signed_for_once(place: Place) -> None:
    """A second receipt where one stands already would be another history."""
    relay = place.elsewhere()
    run = relay.start("Pay the bill", by=ANA)
    run.call(pay, "ben", 10)

    def after(path: str, reply: RemoteReply) -> RemoteReply:
        if reply.status != 202 or not path.endswith("/calls"):
            return reply
        told = with_receipt(json.loads(reply.body), lambda one: msgspec.structs.replace(one, seq=2))
        return RemoteReply(status=202, body=json.dumps(told).encode())

    relay.wire.after = after
    with pytest.raises(SigningRefusedError, match="stands already"):
        run.call(pay, "ben", 11)


def test_the_outcome_of_a_call_is_the_program_s_own(place: Place) -> None:
    """Neither another result nor another call."""
    relay = place.elsewhere()
    run = relay.start("Pay the bill", by=ANA)

    for change, why in (
        (lambda told: with_content(told, "result", b'"paid 0"'), "another result"),
        (lambda told: with_body(told, call=new_call_id(place.plane.clock.now())), "of another call"),
    ):

        def after(path: str, reply: RemoteReply, change: Callable[[Told], Told] = change) -> RemoteReply:
            if reply.status != 202 or not path.endswith("/outcome"):
                return reply
            return RemoteReply(status=202, body=json.dumps(change(json.loads(reply.body))).encode())

        relay.wire.after = after
        with pytest.raises(SigningRefusedError, match=why):
            run.call(pay, "ben", 10)
