"""Possession: the presenter of a chain holds the key of its certificate, and made the proof for this very call.

Without this check, a chain that somebody copied would be as good as one's own.
"""

from datetime import datetime, timedelta
from typing import Final

from batonpass.errors import (
    GrantBackdatedError,
    GrantContextError,
    GrantExpiredError,
    GrantNotYetValidError,
    GrantPossessionError,
)
from batonpass.guard.grants.grant_chain import SKEW, SignatureCheck, VerifiedChain
from batonpass.model.base.ids import Digest, RunId
from batonpass.model.grants.grant import Proof, Signed
from batonpass.model.grants.permit import spell_time
from batonpass.wire.grant_statements import signing_bytes

FRESH_FOR: Final = timedelta(seconds=60)


def require_fresh(
    chain: VerifiedChain,
    proof: Proof,
    at: datetime,
    *,
    skew: timedelta = SKEW,
    fresh_for: timedelta = FRESH_FOR,
) -> None:
    """Refuse a proof that was not made just now: step 7.

    Raises `GrantExpiredError`, `GrantNotYetValidError` and `GrantBackdatedError`.
    """
    made, begins = proof.at, chain.certificate.valid_from
    if at - made > fresh_for:
        raise GrantExpiredError(f"the proof was made at {spell_time(made)}, and it is {spell_time(at)}; make a new one")
    if made - at > skew:
        raise GrantNotYetValidError(f"the proof is of {spell_time(made)}, and it is {spell_time(at)}; compare clocks")
    if made < begins - skew:
        raise GrantBackdatedError(f"the proof is dated {spell_time(made)}, and its certificate {spell_time(begins)}")


def require_context(
    chain: VerifiedChain, proof: Proof, *, call: Digest, audience: str, run: RunId | None = None
) -> None:
    """Refuse a proof that is for another certificate, call, audience or run: step 9. Raises `GrantContextError`."""
    if run is not None and chain.certificate.run != run:
        raise GrantContextError(f"the grant is of {chain.certificate.run}, and {run} was expected")
    # A run gets one certificate after the other for the same key. A proof names one of them, so it cannot be sent with
    # another that ends later.
    if proof.certificate != chain.digest:
        raise GrantContextError("the proof was made for another certificate; make a new one")
    # Else a tool server could send the proof on to another one, and act there as the caller.
    if proof.audience != audience:
        raise GrantContextError(f"the proof was made for {proof.audience}, and this is {audience}; make a new one")
    if proof.call != call:
        raise GrantContextError(
            f"the proof was made for another call of {proof.tool}: tool, action, resource or arguments differ"
        )


def require_possession(chain: VerifiedChain, proof: Signed[Proof], is_signed: SignatureCheck) -> None:
    """Refuse a proof that the run's key did not sign: step 10. Raises `GrantPossessionError`."""
    run_key = bytes.fromhex(chain.certificate.run_key)
    if not is_signed(run_key, signing_bytes(proof.payload), proof.signature):
        raise GrantPossessionError(
            f"the proof is not signed with the key of {chain.certificate.run}: the caller does not hold this grant"
        )
