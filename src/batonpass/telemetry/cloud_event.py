"""A receipt as a CloudEvent, in one place for every door that sends or exports one.

Everything in it follows from the stored receipt. So a receiver that gets an event twice gets the same id twice, and can
leave the second one out.
"""

from typing import Any, Final

from msgspec import Struct, structs

from batonpass.model.base.ids import LedgerId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.receipt_shape import wordless_shape

SPECVERSION: Final = "1.0"
EVENT_TYPE: Final = "batonpass.receipt."  # followed by the kind
MEDIA_TYPE: Final = "application/cloudevents+json"
_DATA: Final = "application/json"


class CloudEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event by version 1.0 of the specification, with its extensions for order and for traces."""

    specversion: str
    id: str  # the receipt's: the same event has the same id, however often it is sent
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    data: dict[str, Any]
    sequence: str | None = None  # its position in the ledger
    traceparent: str | None = None

    def attributes(self) -> dict[str, str]:
        """Return its context attributes, as a binary message has them in its headers."""
        return {name: said for name, said in structs.asdict(self).items() if name != "data" and said is not None}


def source_of(ledger: LedgerId) -> str:
    """Return the source of all events of a ledger. With the id of an event it is unique in the world."""
    return f"urn:batonpass:{ledger}"


def cloud_event(
    ledger: LedgerId, stored: StoredReceipt, receipt: Receipt, *, traceparent: str | None = None
) -> CloudEvent:
    """Return a receipt as an event. Its data are the signed fields, without a word that a person or a model wrote."""
    return CloudEvent(
        specversion=SPECVERSION,
        id=receipt.id,
        source=source_of(ledger),
        type=f"{EVENT_TYPE}{receipt.kind}",
        subject=receipt.stream,
        time=receipt.at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        datacontenttype=_DATA,
        data=wordless_shape(stored, receipt),
        sequence=None if stored.position is None else str(stored.position),
        traceparent=traceparent,
    )
