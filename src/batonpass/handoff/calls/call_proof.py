"""Proving: a run shows a tool server, which knows nothing but the root key, that it may make a call."""

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
    """Return what a run sends along with a call: its chain, a certificate for now, and the proof of this very call.

    Raises `NotFoundError` if the run has no grant; `GrantDeniedError`, `GrantExpiredError` and `GrantRevokedError` if
    it does not hold for this; `StreamClosedError`, `FencedError` and `LeaseLostError` if the run is over, or another's;
    and `KeyMissingError` where nobody kept what the root key says of a relay, and that key is not here.
    """
    bounds = holding.bounds
    if not bounds.is_granted:
        raise NotFoundError("grant of", holding.id)
    now = require_working(desk, holding)
    # Each hop lets it be made, or this raises.
    authorise_here(desk, holding, call, holding.present(desk.clock))
    signer, _ = desk.run_keys.get(holding.id)
    certificate = certificate_of(desk, holding, now)
    signers = dict.fromkeys([*(terms.key for terms in bounds.terms), certificate.said.key])
    chain = Chain(enrolments=desk.enrolments(signers), terms=bounds.chain, certificate=certificate)
    proof = prove(call, certificate, run_key=signer, audience=audience, at=desk.clock.now())
    return join_token(encode_chain(chain), encode_proof(proof))
