"""Chains of grants: the giver, receiver and terms of each hop, and revocations."""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import asdict

from batonpass.errors import EditedError, GrantError, NotFoundError
from batonpass.guard.grants.narrower_terms import narrow
from batonpass.handoff.grants.effective_grant import GrantHop, read_hops
from batonpass.handoff.runtime.bounds import Bounds, read_bounds, read_terms
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import HANDOFF, HandoffId, PrincipalId, ReceiptId, RunId, StreamId
from batonpass.model.bodies.body import GrantRevoked, Kind
from batonpass.model.grants.charge import REVOKED, part_of
from batonpass.model.grants.grant import Signed, Terms
from batonpass.records.text import Text, read_receipt, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery


class Revocation(Struct, frozen=True, kw_only=True):
    """Who revoked a grant, when, and why."""

    by: PrincipalId
    at: datetime
    reason: Text | None
    receipt: ReceiptId


class HeldGrant(GrantHop, frozen=True, kw_only=True):
    """One hop of a chain, and its revocation."""

    revoked: Revocation | None


def read_chain(view: LedgerView, account: StreamId) -> tuple[HeldGrant, ...]:
    """Return the chain of grants down to a handoff or root, its own last.

    Every signature and link is checked. Raises `NotFoundError` if there is no grant.
    """
    chain = _chain(view, account)
    if not chain:
        raise NotFoundError("grant of", account)
    return tuple(
        HeldGrant(**asdict(hop), revoked=find_revocation(view, hop.account) if hop.is_revoked else None)
        for hop in read_hops(view, chain)
    )


def find_widened(chain: tuple[HeldGrant, ...]) -> Iterator[str]:
    """Yield permits that somebody granted beyond their own grant. They have no effect, but should not be there."""
    for depth, (above, below) in enumerate(pairwise(chain)):
        try:
            narrow(above.terms.said, below.terms.said, depth=depth)
        except GrantError as error:
            yield str(error)


def _chain(view: LedgerView, account: StreamId) -> tuple[Signed[Terms], ...]:
    if not account.startswith(HANDOFF):
        bounds = read_bounds(view, view.get_run(RunId(account)))
        return bounds.chain if bounds.is_granted else ()
    handoff = view.get_handoff(HandoffId(account))
    above: Bounds = read_bounds(view, view.get_run(handoff.parent))
    offered = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    terms = read_terms(view, offered)
    return () if terms is None else (*above.chain, terms)


def find_revocation(view: LedgerView, account: StreamId) -> Revocation | None:
    """Return the first revocation of a handoff's or root's grant; None if there is none."""
    if not any(view.find_charged([part_of(account, REVOKED)])):
        return None
    for stored in view.find_receipts(ReceiptQuery(kind=Kind.GRANT_REVOKED)):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, GrantRevoked) and receipt.body.account == account:
            reason = read_texts(view, receipt).get(REASON)
            return Revocation(by=receipt.body.by, at=receipt.at, reason=reason, receipt=receipt.id)
    raise EditedError(f"{account} counts as revoked, and no receipt says so; run `batonpass ledger verify`")
