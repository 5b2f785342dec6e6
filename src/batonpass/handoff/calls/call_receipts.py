"""Write the receipts about calls, and handle one that cannot be written.

An enforced run stops then. An observed run goes on and counts the gap, which a later receipt reports.
"""

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
    """Write one receipt about a call. If that fails, an enforced run raises `StoreError`, an observed run gets None."""
    try:
        # Before the receipt itself: whoever reads the stream must learn of missing calls where they are missing.
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
    """Record that a call was denied before it was made: the rule, and the sentence that the caller is told."""
    # A finished run only repeats its record, and its stream takes no more receipts.
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
    """Record that a call was denied of which only the name and the arguments are known, before any check began."""
    described = describe({"tool": tool, "arguments": arguments})
    write_denial(desk, holding, tool, described, rule=rule, reason=reason, beside=beside)
