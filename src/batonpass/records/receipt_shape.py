"""The JSON shape of a receipt, the same for every door."""

from typing import Any

import msgspec

from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.shape import Shape, exact, text_shape
from batonpass.records.text import read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import digest


def receipt_shape(view: LedgerView, stored: StoredReceipt, receipt: Receipt) -> Shape:
    """Return a receipt: its signed fields and its contents."""
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
        "content": {name: text_shape(text) for name, text in read_texts(view, receipt).items()},
    }


def signed_body(stored: StoredReceipt) -> dict[str, Any]:
    """Return the body of a receipt as it was signed."""
    # From the signed bytes, not from our values: they include fields that this version does not know.
    body: dict[str, Any] = msgspec.json.decode(stored.payload)["predicate"]["body"]
    return body
