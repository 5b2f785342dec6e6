"""Receipts about calls: how each is written, denials, and what happens where nothing can be written."""

from batonpass.errors import StoreError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.json_values import describe
from batonpass.model.base.content_names import ARGUMENTS, TARGET
from batonpass.model.base.ids import new_call_id
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Body, ToolDenied
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Touch
from batonpass.model.ledger.receipt import SignedReceipt


def write_about_call(
    desk: Desk,
    holding: Holding,
    body: Body,
    *contents: Content,
    touches: tuple[Touch, ...] = (),
    within: tuple[Within, ...] = (),
) -> SignedReceipt | None:
    """Write one receipt about a call; None if it could not be written, and the run is only watched: that goes on."""
    try:
        fill_gap(desk, holding)
        return desk.recording.record(holding.working, body, contents, touches=touches, within=within)
    except StoreError:
        if holding.working.mode is Mode.ENFORCED:
            raise
        with holding.lock:
            holding.unrecorded += 1
        return None


def write_denial(
    desk: Desk,
    holding: Holding,
    tool: str,
    described: bytes,
    *,
    rule: str,
    reason: str | None,
    shown: str | None = None,
    beside: tuple[Content, ...] = (),
) -> None:
    """Record that a call was refused before it was made: by which rule, and in the words that its caller is told."""
    if holding.replaying:
        return
    body = ToolDenied(run=holding.id, call=new_call_id(desk.clock.now()), tool=tool, rule=rule)
    contents = [desk.json(ARGUMENTS, described)]
    if shown is not None:
        contents.append(desk.text(TARGET, shown))
    if reason is not None:
        contents.append(desk.refusal(reason))
    write_about_call(desk, holding, body, *contents, *beside)
    holding.use.refuse(rule)


def deny_call(
    desk: Desk,
    holding: Holding,
    tool: str,
    arguments: object,
    *,
    rule: str,
    reason: str | None = None,
    beside: tuple[Content, ...] = (),
) -> None:
    """Record that a call was refused for which there was nothing that could be called."""
    described = describe({"tool": tool, "arguments": arguments})
    write_denial(desk, holding, tool, described, rule=rule, reason=reason, beside=beside)
