"""The JSON shape of a receipt, the same for every door."""

from typing import Any

import msgspec
from msgspec.structs import asdict

from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.json_shapes import Shape, exact, text_shape
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import digest


def receipt_shape(view: LedgerView, stored: StoredReceipt, receipt: Receipt) -> Shape:
    """Return a receipt: its signed fields and its contents."""
    contents = {name: text_shape(text) for name, text in read_texts(view, receipt).items()}
    return {**signed_fields(stored, receipt), "content": contents}


def wordless_shape(stored: StoredReceipt, receipt: Receipt) -> Shape:
    """Return a receipt without a word that anybody wrote: its signed fields, and its contents by their digests."""
    contents = {name: asdict(ref) for name, ref in receipt.content.items()}
    return {**signed_fields(stored, receipt), "content": contents}


def signed_fields(stored: StoredReceipt, receipt: Receipt) -> Shape:
    """Return the signed fields of a receipt, all but its contents."""
    return {
        "id": receipt.id,
        "kind": receipt.kind,
        "at": exact(receipt.at),
        "stream": receipt.stream,
        "seq": receipt.seq,
        "epoch": receipt.epoch,
        "position": stored.position,
        "digest": digest(stored.payload),
        "previous": receipt.previous,
        "mode": receipt.mode,
        "relay": receipt.relay,
        "relay_key": receipt.relay_key,
        "cosigner": receipt.cosigner,
        "root": receipt.root,
        "session": receipt.session,
        "body": signed_body(stored),
    }


def signed_body(stored: StoredReceipt) -> dict[str, Any]:
    """Return the body of a receipt as it was signed."""
    # From the signed bytes, not from our values: they include fields that this version does not know.
    body: dict[str, Any] = msgspec.json.decode(stored.payload)["predicate"]["body"]
    return body
