"""Revoking grants: from the next call on, in every process; and the signed list for servers that are offline."""

from datetime import timedelta
from typing import TYPE_CHECKING

from batonpass.audit.meant_ids import get_meant
from batonpass.errors import NotFoundError
from batonpass.grants.issuer import revoke
from batonpass.ledger.draft import Draft
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import (
    HANDOFF,
    RUN,
    Digest,
    HandoffId,
    PrincipalId,
    RelayId,
    RunId,
    StreamId,
    require_principal,
)
from batonpass.model.bodies.body import GrantRevoked, Kind
from batonpass.model.ledger.key import KeyRole, KeyStatus, Signer
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.token import encode_revocations

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk


def revoke_grant(desk: "Desk", relay: RelayId, of: str, *, by: str, reason: str) -> None:
    """Revoke the grant of a handoff or a root run, and every grant below it.

    Raises `NotFoundError` if there is no such handoff or run, or it has no grant.
    """
    require_text(REASON, reason)
    with desk.store.view() as view:
        anchor = view.info().genesis
        account = find_account(view, of)
        require_granted(view, account)
    desk.recording.append(
        Draft(
            stream=StreamId(relay),
            body=GrantRevoked(account=account, by=require_principal("by", PrincipalId(by))),
            anchor=anchor,
            contents=(desk.text(REASON, reason),),
        )
    )


def require_granted(view: LedgerView, account: StreamId) -> Digest:
    """Return the digest of the terms of a handoff or a root run. Raises `NotFoundError` if it has no grant."""
    if account.startswith(HANDOFF):
        handoff = view.get_handoff(HandoffId(account))
        stored = view.get_receipt_at(StreamId(handoff.parent), handoff.seq)
    else:
        stored = view.get_receipt_at(StreamId(view.get_run(RunId(account)).id), 1)
    terms: Digest | None = getattr(decode_receipt(stored.payload).body, "terms", None)
    if terms is None:
        raise NotFoundError("grant of", account)
    return terms


def account_of_run(view: LedgerView, run: RunId) -> StreamId:
    """Return the account of a run's grant: its handoff, or the run itself if it is a root."""
    known = view.get_run(run)
    return StreamId(known.handoff or known.id)


def find_account(view: LedgerView, given: str) -> StreamId:
    """Return the account that somebody means by a text: a handoff or a root run. Raises as `choose` does."""
    meant = get_meant(view, given, (HANDOFF, RUN))
    return StreamId(meant.id) if meant.kind == HANDOFF else account_of_run(view, RunId(meant.id))


def revocation_list(desk: "Desk", root: Signer, *, good_for: timedelta) -> str:
    """Return everything that is revoked, signed with the root key, for servers that verify without this ledger.

    The number of the list counts the receipts and keys that revoke something. It grows with these and with nothing
    else. So a newly signed list replaces the one before, even if the clock was set back in between.
    """
    terms: set[Digest] = set()
    with desk.store.view() as view:
        found = [*view.find_receipts(ReceiptQuery(kind=Kind.GRANT_REVOKED))]
        for stored in found:
            body = decode_receipt(stored.payload).body
            if isinstance(body, GrantRevoked):
                terms.add(require_granted(view, body.account))
        relays = [key for key in view.find_keys() if key.role is KeyRole.RELAY]
        keys = frozenset(key.id for key in relays if key.status is KeyStatus.REVOKED)
    number = len(found) + len(keys) + 1
    at = desk.clock.now()
    return encode_revocations(revoke(number, signer=root, at=at, good_for=good_for, terms=frozenset(terms), keys=keys))
