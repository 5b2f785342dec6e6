"""Binding the key of an attempt to the terms of its offer, and the attempt to every limit above it."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import GrantExpiredError
from batonpass.handoff.grants.terms import certify, kept
from batonpass.handoff.history.moments import last_recorded, later
from batonpass.handoff.history.offers import Offer
from batonpass.handoff.runtime.bounds import Bounds, Hop, below, read_bounds, read_terms
from batonpass.handoff.runtime.desk import Desk
from batonpass.ledger.position import UNGRANTED, Granted, Working
from batonpass.model.base.content_names import CERTIFICATE
from batonpass.model.base.ids import PublicKey, RunId, StreamId
from batonpass.model.grants.grant import Signed, Terms
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import Receipt
from batonpass.store.port import LedgerView


class Binding(Struct, frozen=True, kw_only=True):
    """Makes the certificate that binds the key of an attempt to the terms of its offer."""

    desk: Desk
    terms: Signed[Terms]
    attempt: int
    lease: Lease | None = None
    seen: datetime | None = None  # the certificate is issued no earlier than this
    tried_out: bool = False  # the grant is only observed: its end keeps nobody from working

    def __call__(self, run: RunId, run_key: PublicKey) -> Granted:
        """Return the grant part of the acceptance. Raises `GrantExpiredError`."""
        try:
            return self._granted(run, run_key)
        except GrantExpiredError:
            if not self.tried_out:
                raise
            return UNGRANTED

    def _granted(self, run: RunId, run_key: PublicKey) -> Granted:
        certificate = certify(
            self.desk,
            self.terms,
            run=run,
            attempt=self.attempt,
            epoch=1,
            run_key=run_key,
            lease=self.lease,
            seen=self.seen,
        )
        return Granted(certificate=certificate.digest, contents=(kept(self.desk, CERTIFICATE, certificate),))


def binding_of(
    desk: Desk,
    offer: Offer,
    terms: Signed[Terms] | None,
    lease: Lease | None,
    above: Bounds,
    *,
    seen: datetime | None = None,
) -> Binding | None:
    """Return the binding of the next attempt to the terms of its offer; None if the offer has no terms."""
    if terms is None:
        return None
    return Binding(
        desk=desk,
        terms=terms,
        attempt=offer.handoff.attempt + 1,
        lease=lease,
        seen=seen or above.known_at,
        tried_out=above.tried_out,
    )


def read_above(view: LedgerView, offer: Offer, offered: Receipt) -> tuple[Signed[Terms] | None, Bounds]:
    """Return the terms of an offer and the bounds of its sender. Both are read from receipts and checked."""
    parent = view.get_run(offer.handoff.parent) if offer.parent is None else offer.parent
    terms, above = read_terms(view, offered), read_bounds(view, parent)
    if terms is not None:
        here = last_recorded(view, [StreamId(offer.handoff.id)])
        above = replace(above, known_at=later(offered.at, here, above.known_at))
    return terms, above


def bounds_of(above: Bounds, offer: Offer, working: Working, terms: Signed[Terms] | None) -> Bounds:
    """Return the bounds of an attempt, given the bounds of its sender."""
    hop = Hop(
        account=StreamId(offer.handoff.id),
        agent=working.run.agent,
        brief=offer.baton.brief,
        since=working.run.started_at,
        terms=terms,
    )
    return below(above, hop)
