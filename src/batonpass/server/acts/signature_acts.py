"""Signatures from clients that keep the keys of their runs: given for an act that waits, and recalled after a fault."""

import binascii
from base64 import b64decode
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import ReceiptId
from batonpass.model.ledger.receipt import SIGNATURE_BYTES
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import AGENTS, DECIDERS, ApiRequest, Endpoint
from batonpass.server.idempotency import GivenAnswer
from batonpass.server.shape_types import Document


class SignatureMessage(Struct, frozen=True, kw_only=True):
    """The answer to something that was to be signed: the signature in base64, or null if the client refuses."""

    number: int
    signature: str | None


def sign(asked: ApiRequest) -> GivenAnswer:
    """Give a signature to an act that waits for it, and return its next step: more to sign, or its answer."""
    said: SignatureMessage = asked.body
    act = asked.plane.parked.get(asked.caller.token.id, asked.names["act"])
    act.give(said.number, None if said.signature is None else _signature(said.signature))
    return act.next_step()


def recall(endpoint: Endpoint, asked: ApiRequest, signed: str) -> object | None:
    """Return the answer of an act that was recorded before the connection was lost; None if it was not.

    `signed` is the receipt that the client signed last. If it is in the ledger, the act was done: nothing is done
    twice, whichever server is asked.
    """
    if endpoint.recall is None:
        return None
    with asked.plane.relay.store.view() as view:
        try:
            receipt = read_receipt(view.get_receipt(ReceiptId(signed)))
        except NotFoundError:
            return None
    return endpoint.recall(asked, receipt)


def _signature(text: str) -> bytes:
    try:
        signature = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValueError("signature", "is not base64") from None
    if len(signature) != SIGNATURE_BYTES:
        raise InvalidValueError("signature", f"has {len(signature)} bytes, not {SIGNATURE_BYTES}")
    return signature


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/acts/{act}",
        name="signAct",
        about="Sign for an act that waits for it, and get its next step.",
        roles=AGENTS | DECIDERS,
        act=sign,
        answers=Document,
        body=SignatureMessage,
        needs_proof=False,
        signed=False,
        next_step=True,
    ),
)
