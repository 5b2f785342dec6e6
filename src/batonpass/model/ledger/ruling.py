"""A hold, and what an approver signs about it."""

from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from batonpass.model.base.ids import AgentId, CallId, Digest, HandoffId, LedgerId, PrincipalId, RunId
from batonpass.model.bodies.body import (
    Gate,
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    HandoffHeld,
    HandoffInitiated,
    ToolApproved,
    ToolBacked,
    ToolHeld,
    ToolRefused,
)

# About a call of a run that goes on, and about anything.
CallDecided: TypeAlias = ToolBacked | ToolApproved | ToolRefused
Decided: TypeAlias = HandoffBacked | HandoffApproved | HandoffDenied | CallDecided


class Hold(Struct, frozen=True, kw_only=True):
    """Something that waits for somebody: a handoff, at its offer or before a call, or a call of a run that goes on."""

    receipt: Digest  # which says that it waits: this very hold, and no later one
    gate: Gate
    rule: str | None = None
    until: datetime | None = None
    proven: bool = False  # it takes a decision that an approver's key signed
    approvals: int = 1  # so many people have to let it go on
    worker: AgentId  # whose work waits
    principal: PrincipalId | None = None  # for whom it is done
    handoff: HandoffId | None = None
    offer: Digest | None = None  # the receipt of the handoff's offer
    run: RunId | None = None  # the run that wanted to make the call
    call: CallId | None = None
    key: Digest | None = None  # of tool, arguments and the how-manyth such call it is

    @property
    def name(self) -> str:
        """Return what people name it by: the handoff, or the call of a run that goes on."""
        return str(self.handoff or self.call)


class Ruling(Struct, frozen=True, kw_only=True):
    """What an approver signs: one decision about one hold in one ledger."""

    ledger: LedgerId
    hold: Hold
    approved: bool
    by: PrincipalId
    at: datetime
    shown: Digest | None = None
    looked_ms: int | None = None


def is_approval(body: Decided) -> bool:
    """Return whether somebody is for letting something go on, be it alone or with others."""
    return isinstance(body, HandoffBacked | HandoffApproved | ToolBacked | ToolApproved)


def ruling_of(ledger: LedgerId, hold: Hold, body: Decided, at: datetime) -> Ruling:
    """Return what must have been signed for a decision to be proven."""
    return Ruling(
        ledger=ledger,
        hold=hold,
        approved=is_approval(body),
        by=body.by,
        at=at,
        shown=body.shown,
        looked_ms=body.looked_ms,
    )


def hold_of_offer(body: HandoffInitiated, receipt: Digest, *, principal: PrincipalId | None = None) -> Hold:
    """Return the hold of a handoff that was held at its offer."""
    return Hold(
        receipt=receipt,
        gate=body.gate or Gate.NONE,
        rule=body.rule,
        until=body.until,
        proven=body.proven,
        approvals=body.approvals,
        worker=body.to,
        principal=principal,
        handoff=body.handoff,
        offer=receipt,
    )


def hold_of_attempt(
    body: HandoffHeld,
    receipt: Digest,
    *,
    to: AgentId,
    offer: Digest,
    key: Digest | None,
    principal: PrincipalId | None = None,
) -> Hold:
    """Return the hold of a handoff whose attempt stopped before a call."""
    return Hold(
        receipt=receipt,
        gate=body.gate or Gate.NONE,
        rule=body.reason,
        until=body.until,
        proven=body.proven,
        approvals=body.approvals,
        worker=to,
        principal=principal,
        handoff=body.handoff,
        offer=offer,
        run=body.ended.run,
        call=body.call,
        key=key,
    )


def hold_of_call(body: ToolHeld, receipt: Digest, *, agent: AgentId, principal: PrincipalId | None = None) -> Hold:
    """Return the hold of a call of a run that goes on."""
    return Hold(
        receipt=receipt,
        gate=body.gate,
        rule=body.rule,
        proven=body.proven,
        approvals=body.approvals,
        worker=agent,
        principal=principal,
        run=body.run,
        call=body.call,
        key=body.key,
    )
