"""Decisions of people: approvals, revocations, seals, and whether the ledger holds."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.errors import HoldChangedError, InvalidValueError, KeyRefusedError, NotFoundError
from batonpass.handoff.approvals.decision_sheet import Material, material_of_call, material_of_handoff
from batonpass.handoff.approvals.passkey_request import find_own_passkey, request_signature
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.checks import require_utc
from batonpass.model.base.ids import CALL, HANDOFF, CallId, HandoffId, PrincipalId
from batonpass.model.bodies.body import PasskeyAnswer
from batonpass.records.json_shapes import Shape
from batonpass.relay import desk_of
from batonpass.server.acts.handoff_acts import NoMessage
from batonpass.server.acts.own_run import in_whose_name
from batonpass.server.endpoint import ADMINS, AUDITORS, DECIDERS, PEOPLE, ApiRequest, Endpoint
from batonpass.server.resources.ledger import seal_shape
from batonpass.server.shape_types import DoneShape, PreparedShape, SealShape, SheetShape, VerifiedShape
from batonpass.signing.approver_key import Approver
from batonpass.signing.keys_elsewhere import ElsewhereSigner, signature_source
from batonpass.signing.ruling_proof import PasskeySigner, challenge_of, read_signature

_CREATED: Final = 201


class PasskeyMessage(Struct, frozen=True, kw_only=True):
    """The answer of a passkey that was asked to sign a ruling."""

    at: datetime  # when it was asked, as the answer to `prepareRuling` says
    client_data: str  # the browser's JSON, as it made it
    authenticator_data: str  # in hexadecimal
    signature: str  # as the authenticator made it, in hexadecimal


class RulingMessage(Struct, frozen=True, kw_only=True):
    """The ruling of a person on something that is held. Without the approver's key it is recorded as unproven."""

    approved: bool
    reason: str | None = None
    shown: str | None = None  # the digest of the sheet that was read
    looked_ms: int | None = None
    passkey: PasskeyMessage | None = None
    by: str | None = None


class PrepareMessage(Struct, frozen=True, kw_only=True):
    """A ruling that a passkey is to sign."""

    approved: bool
    shown: str  # the digest of the sheet that was read
    looked_ms: int | None = None


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
    """Return the sheet that an approver has to read first."""
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


def _read_sheet(asked: ApiRequest, held: str, digest: str) -> Material:
    """Return the sheet that somebody has read. Raises `HoldChangedError` if it is another one by now."""
    shown = _sheet_again(asked, held)
    if shown.digest != digest:
        raise HoldChangedError(held)
    return shown


def prepare(asked: ApiRequest) -> Shape:
    """Return the ruling that the caller's passkey has to sign, before they are asked for it. Nothing is recorded."""
    said: PrepareMessage = asked.body
    held = _held(asked)
    made = request_signature(
        desk_of(asked.plane.relay),
        held.id,
        approved=said.approved,
        by=asked.caller.principal,
        shown=_read_sheet(asked, held.id, said.shown),
        looked_ms=said.looked_ms,
    )
    return {
        "ruling": made.ruling.decode(),
        "challenge": challenge_of(made.ruling).hex(),
        "at": made.at,
        "site": made.passkey.site,
        "credential": made.passkey.credential,
    }


def rule(asked: ApiRequest) -> Shape:
    """Approve or deny something that is held. A sheet that has changed since it was read is not ruled on."""
    said: RulingMessage = asked.body
    held, by = _held(asked), _ruler(asked, said)
    shown = None if said.shown is None else _read_sheet(asked, held.id, said.shown)
    if said.approved:
        held.approve(by=by, reason=said.reason, shown=shown, looked_ms=said.looked_ms)
    else:
        held.deny(by=by, reason=said.reason or "", shown=shown, looked_ms=said.looked_ms)
    return {"done": True}


def _ruler(asked: ApiRequest, said: RulingMessage) -> str | Approver:
    """Return who rules: with their key if it is at their client, which is asked to sign; else by name alone."""
    name, source = in_whose_name(asked, said.by), signature_source()
    if said.passkey is not None:
        return _by_passkey(asked, PrincipalId(name), said.passkey)
    if source is None or source.new_key is None:
        return name
    return Approver(PrincipalId(name), ElsewhereSigner(source.new_key, source))


def _by_passkey(asked: ApiRequest, name: PrincipalId, said: PasskeyMessage) -> Approver:
    """Return somebody with the signature of their passkey. Whether it signed this ruling is checked with the ruling."""
    with asked.plane.relay.store.view() as view:
        own = find_own_passkey(view, name)
    if own is None:
        raise KeyRefusedError(f"{name} has no active passkey in this ledger, so it proves nothing here")
    try:
        signature = read_signature(own[1].algorithm, bytes.fromhex(said.signature))
    except ValueError:
        raise InvalidValueError("passkey.signature", "is no signature of such a passkey in hexadecimal") from None
    answer = PasskeyAnswer(client_data=said.client_data, authenticator_data=said.authenticator_data)
    signer = PasskeySigner(own[0].id, own[0].public_key, signature)
    return Approver(name, signer, require_utc("passkey.at", said.at), answer)


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
        path="/v1/approvals/{held}/ruling",
        name="prepareRuling",
        about="Make the ruling that the caller's passkey has to sign.",
        roles=DECIDERS,
        act=prepare,
        answers=PreparedShape,
        body=PrepareMessage,
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
