"""Proving: a run shows a tool server, which knows nothing but the root key, that it may make a call."""

from datetime import timedelta
from typing import Final

from batonpass.errors import NotFoundError
from batonpass.grants.issuing import prove
from batonpass.guard.authority import authorise
from batonpass.handoff.desk import Desk
from batonpass.handoff.granting import require_in_force
from batonpass.handoff.holding import Holding
from batonpass.handoff.limiting import revoked
from batonpass.model.call import Call
from batonpass.model.charge import REVOKED, part_of
from batonpass.model.grant import Chain
from batonpass.wire.token import encode_chain, encode_proof, join_token

# For one call a short one is enough, and what is revoked ends with it.
CERTIFIED_FOR: Final = timedelta(minutes=5)


def prove_call(desk: Desk, holding: Holding, call: Call, *, audience: str) -> str:
    """Return what a run sends along with a call: its chain, a certificate for now, and the proof of this very call.

    Raises `NotFoundError` if the run has no grant, `GrantDeniedError`, `GrantExpiredError` and `GrantRevokedError` if
    it does not hold for this, and `KeyMissingError` where the root key is not, which vouches for this relay.
    """
    bounds = holding.bounds
    if not bounds.chain:
        raise NotFoundError("grant of", holding.id)
    now = desk.clock.now()
    require_in_force(bounds, now)
    with desk.store.view() as view:
        for account in bounds.line:
            if any(view.find_charged(part_of(account, REVOKED))):
                raise revoked(bounds, account)
    authorise(bounds.terms, call, now)
    run = holding.working.run
    signer, epoch = desk.run_keys.get(run.id)
    ends = bounds.ends
    certificate = desk.issuer.certify(
        bounds.chain[-1],
        run=run.id,
        attempt=0 if run.handoff is None else run.attempt,
        epoch=epoch,
        run_key=signer.public_key,
        valid_for=CERTIFIED_FOR if ends is None else min(CERTIFIED_FOR, ends - now),
    )
    chain = Chain(enrolments=(desk.enrolment(),), terms=bounds.chain, certificate=certificate)
    proof = prove(call, certificate, run_key=signer, audience=audience, at=now)
    return join_token(encode_chain(chain), encode_proof(proof))
