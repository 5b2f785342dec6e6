"""Proofs of calls: a tool server verifies with only the root key that a run may make a call.

The server needs no access to the ledger.
"""

from batonpass.errors import NotFoundError
from batonpass.grants.issuer import prove
from batonpass.handoff.calls.authority import authorise_here
from batonpass.handoff.grants.certificate_renewal import certificate_of, require_working
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Chain
from batonpass.wire.token import encode_chain, encode_proof, join_token


def prove_call(desk: Desk, holding: Holding, call: Call, *, audience: str) -> str:
    """Return the token that a run sends with a call: its chain, its current certificate and a proof of this one call.

    Raises `NotFoundError` if the run has no grant; `GrantDeniedError`, `GrantExpiredError` and `GrantRevokedError` if
    the grant does not cover the call; `StreamClosedError`, `FencedError` and `LeaseLostError` if the run is over or was
    taken over; and `KeyMissingError` if the enrolment of a relay was not kept and the root key is not here.
    """
    bounds = holding.bounds
    if not bounds.is_granted:
        raise NotFoundError("grant of", holding.id)
    # First of all: a certificate stays good for minutes, and a server that fetches no revocations cannot know that the
    # run has ended since.
    now = require_working(desk, holding)
    # It returns the permits of every hop; here only the refusal matters.
    authorise_here(desk, holding, call, holding.present(desk.clock))
    signer, _ = desk.run_keys.get(holding.id)
    certificate = certificate_of(desk, holding, now)
    signers = dict.fromkeys([*(terms.key for terms in bounds.terms), certificate.said.key])
    chain = Chain(enrolments=desk.enrolments(signers), terms=bounds.chain, certificate=certificate)
    proof = prove(call, certificate, run_key=signer, audience=audience, at=desk.clock.now())
    return join_token(encode_chain(chain), encode_proof(proof))
