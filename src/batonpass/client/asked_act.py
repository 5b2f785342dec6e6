"""An act that a program asked for, and whether a receipt that it is to sign says that and nothing else.

A control plane prepares the receipts and the program signs them with the key of its run. The program trusts nobody
there: it decodes the bytes that it is to sign, opens every content by its digest, and compares both with its own words.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from batonpass.credentials import Redactor
from batonpass.errors import BatonpassError, SigningRefusedError
from batonpass.model.base.ids import ContentId, KeyId, PublicKey, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.ledger.content import content_digest
from batonpass.model.ledger.receipt import Receipt
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import decode_receipt, encode_receipt, signing_bytes
from batonpass.wire.versions import RULING_TYPE

# What the relay itself notices while it does any act: taint that reached the run, and that something was not recorded.
NOTICED: Final = frozenset({Kind.RUN_TAINTED, Kind.RUN_GAP})
_HEAD: Final = b"DSSEv1 "
_REDACTOR: Final = Redactor()

Words = Mapping[str, bytes]


class SignatureAsked(Struct, frozen=True, kw_only=True):
    """A request for a signature, decoded: the receipt, and the contents that it names."""

    act: str
    number: int
    key: PublicKey
    message: bytes
    receipt: Receipt | None  # None if it is no receipt
    payload: bytes = b""
    words: Words = field(default_factory=dict)


class AskedAct(Struct, frozen=True, kw_only=True):
    """One act that a program asked for: its run, the kinds of its receipts, and the fields that they must have."""

    run: RunId | None  # in whose name; None if the act begins a run
    kinds: frozenset[str]
    says: Callable[[Receipt, Words], str | None]  # the problem of a receipt of one of these kinds, or None
    new_key: PublicKey | None = None  # of the run that it begins, or of the person who rules
    rules: Callable[[bytes], str | None] | None = None  # the problem of a person's ruling; None: it is none

    def require_asked(self, asked: SignatureAsked, held: PublicKey | None) -> Receipt | None:
        """Return the receipt to sign, or None if it is a ruling.

        Raises `SigningRefusedError` unless it records exactly the act that the program asked for.

        `held` is the key of the run in whose name this is.
        """
        receipt = asked.receipt
        if self.rules is not None:
            if (wrong := self.rules(asked.payload)) is not None or asked.key != self.new_key:
                raise SigningRefusedError(wrong or "the ruling of somebody else")
            return None
        if receipt is None:
            raise SigningRefusedError("it is no receipt")
        begins = asked.key == self.new_key and self.new_key is not None
        if not begins and (asked.key != held or receipt.stream != StreamId(self.run or RunId(""))):
            raise SigningRefusedError(f"{receipt.kind} of {receipt.stream}, which is not this run")
        if receipt.cosigner != KeyId(digest(bytes.fromhex(asked.key))):
            raise SigningRefusedError(f"{receipt.kind} with the key of somebody else")
        if receipt.kind in NOTICED and not begins:
            return receipt
        if receipt.kind not in self.kinds:
            raise SigningRefusedError(f"{receipt.kind}, which no such act makes")
        if (wrong := self.says(receipt, asked.words)) is not None:
            raise SigningRefusedError(f"{receipt.kind}: {wrong}")
        return receipt


def opened_question(told: Any) -> SignatureAsked:  # noqa: ANN401 - JSON
    """Return a request for a signature, decoded and checked against its digests. Raises `SigningRefusedError`."""
    try:
        message = b64decode(told["message"], validate=True)
        act, number, key = str(told["act"]), int(told["number"]), PublicKey(str(told["key"]))
        given = [_content(one) for one in told["contents"]]
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise SigningRefusedError("it cannot be read") from None
    payload = _payload(message)
    if payload is None:
        raise SigningRefusedError("it is neither a receipt nor a ruling")
    if RULING_TYPE.encode() in payload and not given:
        return SignatureAsked(act=act, number=number, key=key, message=message, receipt=None, payload=payload)
    try:
        receipt = decode_receipt(payload)
        known = encode_receipt(receipt)
    except BatonpassError as error:
        raise SigningRefusedError(str(error)) from None
    if known != payload:
        # A field that this version does not know could say anything.
        raise SigningRefusedError(f"{receipt.kind} with something in it that this version does not know")
    words = {}
    for name, content, salt, body in given:
        ref = receipt.content.get(name)
        if ref is None or ref.id != content or ref.digest != content_digest(salt, body) or ref.size != len(body):
            raise SigningRefusedError(f"{receipt.kind} with another {name} than is shown")
        words[name] = body
    if missing := receipt.content.keys() - words.keys():
        raise SigningRefusedError(f"{receipt.kind} with {', '.join(sorted(missing))}, which is not shown")
    return SignatureAsked(act=act, number=number, key=key, message=message, receipt=receipt, words=words)


def _content(told: Any) -> tuple[str, ContentId, bytes, bytes]:  # noqa: ANN401 - JSON
    salt, body = b64decode(told["salt"], validate=True), b64decode(told["body"], validate=True)
    return str(told["name"]), ContentId(str(told["id"])), salt, body


def _payload(message: bytes) -> bytes | None:
    """Return the payload of signed bytes; None if these are none of a receipt."""
    head, _, payload = message.partition(b" {")
    if not head.startswith(_HEAD):
        return None
    payload = b"{" + payload
    return payload if signing_bytes(payload) == message else None


def same_json(name: str, found: bytes | None, said: bytes) -> bool:
    """Return whether a content is the program's document. The relay takes secrets out before it writes, as we do."""
    if found is None:
        return False
    try:
        return bool(json.loads(found) == json.loads(_REDACTOR.document(name, said)))
    except (ValueError, RecursionError):
        return False


def same_text(name: str, found: bytes | None, said: str) -> bool:
    """Return whether a content is the program's text, as above."""
    try:
        return found is not None and found.decode() == _REDACTOR.text(name, said)
    except UnicodeDecodeError:
        return False


def same_bytes(name: str, found: bytes | None, said: bytes) -> bool:
    """Return whether a content has the program's bytes, as above."""
    return found is not None and found == _REDACTOR.body(name, said)
