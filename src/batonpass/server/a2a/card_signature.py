"""The signature of a card: a JWS with the relay's key over the card in canonical JSON, as A2A 1.0 says (8.4)."""

import json
from base64 import urlsafe_b64encode
from typing import Any, Final

from a2a.types.a2a_pb2 import AgentCard as CardDocument
from a2a.types.a2a_pb2 import AgentCardSignature
from google.protobuf.json_format import MessageToDict

from batonpass.model.ledger.key import Signer

_ALGORITHM: Final = "EdDSA"


def sign_card(card: CardDocument, signer: Signer) -> CardDocument:
    """Return the card with the signature of a key."""
    header = {"alg": _ALGORITHM, "kid": signer.key, "typ": "JOSE"}
    protected = _base64(canonical_bytes(header))
    signature = signer.sign(f"{protected}.{_base64(card_bytes(card))}".encode("ascii"))
    signed = CardDocument()
    signed.CopyFrom(card)
    signed.signatures.append(AgentCardSignature(protected=protected, signature=_base64(signature)))
    return signed


def card_bytes(card: CardDocument) -> bytes:
    """Return the signed part of a card: everything but the signatures and empty fields."""
    document = MessageToDict(card)
    document.pop("signatures", None)
    return canonical_bytes(_without_empty(document))


def canonical_bytes(document: object) -> bytes:
    """Return JSON as RFC 8785 says. Cards of ours have texts, lists and truth values, and no numbers."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _without_empty(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        kept = {name: left for name, one in value.items() if (left := _without_empty(one)) is not None}
        return kept or None
    if isinstance(value, list):
        return [left for one in value if (left := _without_empty(one)) is not None] or None
    return None if value == "" else value


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
