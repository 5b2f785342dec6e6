"""What `hand_off` and `start` take, for tests whose cases name one part of an offer each."""

from typing import Any

from batonpass import Brief, Grant, Handling
from batonpass.handoff.transfer.offer_request import ITEM_KINDS, items_by_part


def grouped(**parts: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a case says, be it wrong
    """Return arguments of `hand_off` or `start` that say these parts, each in the value that it belongs to."""
    given: dict[str, Any] = {}
    for name, value in (("brief", Brief), ("handling", Handling), ("grant", Grant)):
        said = {part: parts.pop(part) for part in value.__struct_fields__ if part in parts and part != "may"}
        if name == "grant" and said and "may" in parts:
            said["may"] = parts.pop("may")
        if said:
            given[name] = value(**said)
    items: dict[str, Any] = {part: parts.pop(part) for part in ITEM_KINDS if part in parts}
    if items:
        given["items"] = items_by_part(items)
    return {**parts, **given}
