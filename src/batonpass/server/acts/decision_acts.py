"""What people decide: approvals, revocations, seals, and whether the ledger holds."""

from typing import Final

from msgspec import Struct

from batonpass.errors import HoldChangedError, NotFoundError
from batonpass.handoff.approvals.decision_sheet import Material, material_of_call, material_of_handoff
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.ids import CALL, HANDOFF, CallId, HandoffId, PrincipalId
from batonpass.records.shape import Shape
from batonpass.relay import desk_of
from batonpass.server.acts.handoff_acts import NoMessage
from batonpass.server.acts.own_run import in_whose_name
from batonpass.server.endpoint import ADMINS, AUDITORS, DECIDERS, PEOPLE, ApiRequest, Endpoint
from batonpass.server.resources.ledger import seal_shape
from batonpass.server.shape_types import DoneShape, SealShape, SheetShape, VerifiedShape
from batonpass.signing.approver_key import Approver
from batonpass.signing.keys_elsewhere import ElsewhereSigner, signature_source

_CREATED: Final = 201


class RulingMessage(Struct, frozen=True, kw_only=True):
    """The ruling of a person on something that is held. Without the approver's key it is recorded as unproven."""

    approved: bool
    reason: str | None = None
    shown: str | None = None  # the digest of the sheet that was read
    looked_ms: int | None = None
    by: str | None = None


class RevokeMessage(Struct, frozen=True, kw_only=True):
    """Why a grant is revoked."""

    reason: str
    by: str | None = None


def _held(asked: ApiRequest) -> LiveHandoff | LiveCall:
    given = asked.names["held"]
    relay = asked.plane.relay
    if given.startswith(f"{HANDOFF}_"):
        return relay.handoff(given)
    if given.startswith(f"{CALL}_"):
        return relay.held_call(given)
    raise NotFoundError("held handoff or call", given)


def show_sheet(asked: ApiRequest) -> Shape:
    """Return what an approver has to read first."""
    held = _held(asked)
    sheet = held.material()
    return {
        "id": held.id,
        "text": sheet.text,
        "shown": sheet.digest,
        "hold": sheet.hold,
        "proven": sheet.proven,
        "people": sheet.approvals,
    }


def _sheet_again(asked: ApiRequest, held: str) -> Material:
    """Return the sheet as it is now. It is compared and not shown: how long somebody looked is counted from before."""
    desk = desk_of(asked.plane.relay)
    with desk.store.view() as view:
        if held.startswith(f"{HANDOFF}_"):
            return material_of_handoff(view, HandoffId(held), desk.gates)
        return material_of_call(view, CallId(held), desk.gates)


def rule(asked: ApiRequest) -> Shape:
    """Approve or deny something that is held. A sheet that has changed since it was read is not ruled on."""
    said: RulingMessage = asked.body
    held, by = _held(asked), _ruler(asked, said.by)
    shown = None if said.shown is None else _sheet_again(asked, held.id)
    if shown is not None and shown.digest != said.shown:
        raise HoldChangedError(held.id)
    if said.approved:
        held.approve(by=by, reason=said.reason, shown=shown, looked_ms=said.looked_ms)
    else:
        held.deny(by=by, reason=said.reason or "", shown=shown, looked_ms=said.looked_ms)
    return {"done": True}


def _ruler(asked: ApiRequest, given: str | None) -> str | Approver:
    """Return who rules: with their key if it is at their client, which is asked to sign; else by name alone."""
    name, source = in_whose_name(asked, given), signature_source()
    if source is None or source.new_key is None:
        return name
    return Approver(PrincipalId(name), ElsewhereSigner(source.new_key, source))


def revoke(asked: ApiRequest) -> Shape:
    """Revoke the grant of a run or a handoff, and every grant below it."""
    said: RevokeMessage = asked.body
    asked.plane.relay.revoke_grant(asked.names["account"], by=in_whose_name(asked, said.by), reason=said.reason)
    return {"done": True}


def seal(asked: ApiRequest) -> Shape:
    """Make a seal over all receipts so far."""
    return seal_shape(asked.plane.relay.admin.seal())


def verify(asked: ApiRequest) -> Shape:
    """Verify the whole ledger. If it does not hold, the answer is the error that says where."""
    evidence = asked.plane.relay.verify()
    with asked.plane.relay.store.view() as view:
        return {"receipts": evidence.receipts, "position": view.last_position()}


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/approvals/{held}",
        name="showSheet",
        about="Show what an approver has to read first.",
        roles=PEOPLE,
        act=show_sheet,
        answers=SheetShape,
    ),
    Endpoint(
        method="POST",
        path="/v1/approvals/{held}",
        name="rule",
        about="Approve or deny something that is held.",
        roles=DECIDERS,
        act=rule,
        answers=DoneShape,
        body=RulingMessage,
        signed=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/grants/{account}/revocation",
        name="revokeGrant",
        about="Revoke a grant, and every grant below it.",
        roles=DECIDERS,
        act=revoke,
        answers=DoneShape,
        body=RevokeMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/seals",
        name="seal",
        about="Make a seal over all receipts so far.",
        roles=ADMINS,
        act=seal,
        answers=SealShape,
        body=NoMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/verification",
        name="verifyLedger",
        about="Verify the whole ledger.",
        roles=AUDITORS,
        act=verify,
        answers=VerifiedShape,
        body=NoMessage,
    ),
)
