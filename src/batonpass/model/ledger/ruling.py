"""Holds, and the ruling that an approver signs about one."""

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

# Rulings about a call of a run that goes on; and rulings about any hold.
CallDecided: TypeAlias = ToolBacked | ToolApproved | ToolRefused
Decided: TypeAlias = HandoffBacked | HandoffApproved | HandoffDenied | CallDecided


class Hold(Struct, frozen=True, kw_only=True):
    """Something that is held: a handoff at its offer or before a call, or a call of a run that goes on."""

    receipt: Digest  # the receipt of exactly this hold, not of a later one
    gate: Gate
    rule: str | None = None
    until: datetime | None = None
    proven: bool = False  # an approval needs the signature of an approver's key
    approvals: int = 1  # how many people must approve
    worker: AgentId  # the agent whose work is held
    principal: PrincipalId | None = None  # for whom the work is done
    handoff: HandoffId | None = None
    offer: Digest | None = None  # the receipt of the handoff's offer
    run: RunId | None = None  # the run that wanted to make the call
    call: CallId | None = None
    key: Digest | None = None  # of tool, arguments and number among equal calls

    @property
    def name(self) -> str:
        """Return the id by which people name it: the handoff, or the call of a run that goes on."""
        return str(self.handoff or self.call)


class Ruling(Struct, frozen=True, kw_only=True):
    """The text that an approver signs: one decision about one hold in one ledger."""

    ledger: LedgerId
    hold: Hold
    approved: bool
    by: PrincipalId
    at: datetime
    shown: Digest | None = None
    looked_ms: int | None = None


def is_approval(body: Decided) -> bool:
    """Return whether somebody approved, be it the only approval that is needed or one of several."""
    return isinstance(body, HandoffBacked | HandoffApproved | ToolBacked | ToolApproved)


def ruling_of(ledger: LedgerId, hold: Hold, body: Decided, at: datetime) -> Ruling:
    """Return the ruling that must have been signed to prove a decision."""
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
