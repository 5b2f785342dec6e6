"""Certificates of a working run: short, and renewed with its lease for as long as the run may go on.

Inside this ledger, the stream of the run, its lease and the revocations decide about calls. A certificate is for tool
servers that see none of these. So its promise must end soon.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from batonpass.errors import FencedError, KeyMissingError, LeaseLostError, StreamClosedError
from batonpass.handoff.grants.limit_use import require_unrevoked
from batonpass.handoff.grants.terms import require_in_force
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import StreamId
from batonpass.model.grants.grant import Certificate, Signed
from batonpass.model.grants.permit import earlier
from batonpass.model.ledger.lease import Lease
from batonpass.store.port import LedgerStore

# Short, but long enough for some calls: a revoked grant ends with its last certificate.
CERTIFIED_FOR: Final = timedelta(minutes=5)


def renew_lease(store: LedgerStore, desk: Desk | None, lease: Lease, lease_for: timedelta) -> Lease:
    """Renew a lease, and the certificate of the run that works under it.

    Raises `LeaseLostError`. Raises `GrantRevokedError` or `GrantExpiredError` if the run may do nothing any more. In
    that case the lease is renewed all the same, so that the run can report how far it came.
    """
    holding = None if desk is None else desk.leased.get(lease.handoff)
    if desk is None or holding is None or holding.lease is None or holding.lease.token != lease.token:
        return store.renew(lease, lease_for)
    asked_at = holding.present(desk.clock)
    renewed = store.renew(lease, lease_for)
    # The store's clock decides when the lease ends. We know only our own clock, so we count from before the request:
    # that errs on the early side.
    holding.lease = replace(renewed, until=asked_at + lease_for)
    if holding.bounds.chain and not holding.bounds.tried_out and holding.ended is None:
        # If the run was closed or taken over meanwhile, its next receipt finds out.
        with suppress(FencedError, KeyMissingError, StreamClosedError):
            _certify(desk, holding, require_working(desk, holding))
    return renewed


def require_working(desk: Desk, holding: Holding) -> datetime:
    """Return the time, if a run may act under its grant now. The store decides, not the run's memory.

    Raises `StreamClosedError`, `FencedError`, `LeaseLostError`, `GrantExpiredError` and `GrantRevokedError`.
    """
    bounds, run = holding.bounds, holding.working.run
    now = holding.present(desk.clock)
    require_in_force(bounds, now)
    with desk.store.view() as view:
        stream = view.get_stream(StreamId(run.id))
        if not stream.open:
            raise StreamClosedError(run.id)
        held = desk.run_keys.get(run.id)[1] if holding.working.epoch is None else holding.working.epoch
        if held != stream.epoch:
            raise FencedError(run.id, held, stream.epoch)
        if holding.lease is not None and now >= holding.lease.until:
            raise LeaseLostError(holding.lease.handoff)
        require_unrevoked(view, bounds)
    return now


def certificate_of(desk: Desk, holding: Holding, now: datetime) -> Signed[Certificate]:
    """Return a certificate with at least half of its time left: the present one, or a new one."""
    known = holding.certificate
    if known is None or known.said.epoch != desk.run_keys.get(holding.id)[1]:
        return _certify(desk, holding, now)
    lasts, left = known.said.valid_until - known.said.valid_from, known.said.valid_until - now
    return known if left > lasts / 2 else _certify(desk, holding, now)


def _certify(desk: Desk, holding: Holding, now: datetime) -> Signed[Certificate]:
    run = holding.working.run
    signer, epoch = desk.run_keys.get(run.id)
    lease_end = None if holding.lease is None else holding.lease.until
    ends = earlier(earlier(now + CERTIFIED_FOR, lease_end), holding.bounds.ends)
    holding.certificate = desk.issuer.certify(
        holding.bounds.chain[-1],
        run=run.id,
        attempt=0 if run.handoff is None else run.attempt,
        epoch=epoch,
        run_key=signer.public_key,
        valid_for=CERTIFIED_FOR if ends is None else ends - now,
        at=min(now, desk.clock.now()),
    )
    return holding.certificate
