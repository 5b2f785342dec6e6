"""What a proxy has recorded."""

from batonpass.model.bodies.body import Body, ToolCompleted, ToolFailed, ToolRequested
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt


def bodies_in(relay: Relay) -> list[Body]:
    """Return what all receipts say, in their order."""
    with relay.store.view() as view:
        return [decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery())]


def calls_in(relay: Relay) -> list[tuple[str, str | None]]:
    """Return each call's tool and outcome, in the order of the requests; None is in doubt."""
    calls: dict[str, tuple[str, str | None]] = {}
    for body in bodies_in(relay):
        match body:
            case ToolRequested(call=call, tool=tool):
                calls[call] = (tool, None)
            case ToolCompleted(call=call) | ToolFailed(call=call):
                calls[call] = (calls[call][0], str(body.kind).removeprefix("tool."))
    return list(calls.values())
