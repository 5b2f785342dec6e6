"""A ruling as bytes: the in-toto Statement that an approver's key signs. Its type differs from a receipt's.

Nobody stores these bytes. The verifier of a proof makes them again from the recorded hold and decision. So a proof fits
one hold only.
"""

from typing import Any

from batonpass.model.ledger.ruling import Ruling
from batonpass.wire.canonical import encode_typed
from batonpass.wire.versions import RULING_TYPE, STATEMENT_TYPE


def encode_ruling(ruling: Ruling) -> bytes:
    """Return the canonical bytes of a ruling."""
    hold = ruling.hold
    predicate: dict[str, Any] = {
        "ledger": ruling.ledger,
        "decision": "approved" if ruling.approved else "denied",
        "by": ruling.by,
        "at": ruling.at,
    }
    optional = {
        "handoff": hold.handoff,
        "offer": hold.offer,
        "run": hold.run,
        "call": hold.call,
        "key": hold.key,
        "shown": ruling.shown,
        "looked_ms": ruling.looked_ms,
    }
    predicate.update((name, value) for name, value in optional.items() if value is not None)
    return encode_typed(
        {
            "_type": STATEMENT_TYPE,
            "predicateType": RULING_TYPE,
            "subject": [{"name": hold.name, "digest": {"sha256": hold.receipt}}],
            "predicate": predicate,
        },
    )
