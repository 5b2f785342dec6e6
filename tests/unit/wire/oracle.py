"""How receipts were written before their values wrote themselves: part by part, by the rules of the specification."""

from datetime import datetime
from typing import Any

import rfc8785
from msgspec import Struct
from msgspec.structs import fields

from batonpass.model.ledger.receipt import Receipt
from batonpass.wire.versions import PREDICATE_TYPE, STATEMENT_TYPE


def written(receipt: Receipt) -> bytes:
    """Return the bytes of a receipt, made without the code that is under test."""
    predicate: dict[str, Any] = {
        "id": receipt.id,
        "kind": str(receipt.body.kind),
        "seq": receipt.seq,
        "epoch": receipt.epoch,
        "at": plain(receipt.at),
        "mode": str(receipt.mode),
        "recorder": {"relay": receipt.relay, "key": receipt.relay_key},
        "body": plain(receipt.body),
    }
    optional = {"cosigner": receipt.cosigner, "root": receipt.root, "session": receipt.session}
    predicate |= {name: value for name, value in optional.items() if value is not None}
    if receipt.content:
        predicate["content"] = {name: plain(ref) for name, ref in receipt.content.items()}
    return rfc8785.dumps(
        {
            "_type": STATEMENT_TYPE,
            "predicateType": PREDICATE_TYPE,
            "subject": [{"name": receipt.stream, "digest": {"sha256": receipt.previous}}],
            "predicate": predicate,
        },
    )


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a value as JSON: of ours, the parts that do not have their default."""
    if isinstance(value, Struct):
        parts = {part.name: (getattr(value, part.name), part.default) for part in fields(value)}
        return {name: plain(given) for name, (given, default) in parts.items() if given != default}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, str) else value
