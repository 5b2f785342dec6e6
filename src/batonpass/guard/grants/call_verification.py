"""Verifies a call that somebody else makes, with only the root key.

These are all steps of docs/spec/grant.md, section 7, in order. This module remembers nothing and reads no clock. The
caller passes the time, the newest list of revocations, and the memory of proofs that were used.
"""

from datetime import datetime, timedelta
from typing import Protocol

from batonpass.guard.grants.authority import authorise
from batonpass.guard.grants.grant_chain import (
    ANY_GRANT,
    MOST_HOPS,
    SKEW,
    ToolPolicy,
    VerifiedChain,
    require_taken,
    require_timely,
    require_unrevoked,
    verify_chain,
)
from batonpass.guard.grants.possession import FRESH_FOR, require_context, require_fresh, require_possession
from batonpass.guard.grants.revocation import names_in, require_good, verify_revocations
from batonpass.model.base.ids import AgentId, PrincipalId, PublicKey, RunId
from batonpass.model.base.value import Value
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Proof, Signed
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.permit import Permit
from batonpass.signing.ed25519 import is_signed, require_strong
from batonpass.wire.call_digest import digest_call
from batonpass.wire.token import decode_chain, decode_proof, decode_revocations, split_token


class Proofs(Protocol):
    """A memory of proofs, so that none is accepted twice."""

    def require_new(self, proof: str, ends: datetime, at: datetime) -> None:
        """Refuse a proof that was shown before; remember it otherwise."""


class Permitted(Value, frozen=True, kw_only=True):
    """A call that may be made, and who makes it."""

    agent: AgentId
    principal: PrincipalId
    run: RunId
    permits: tuple[Permit, ...]  # the permits that allow it, one for each hop
    limits: Limits  # of all calls together, the lowest of all hops. The tool must count; a signature cannot
    revocations: int | None  # the number of the list that was checked


class VerificationContext(Value, frozen=True, kw_only=True):
    """Where and when a call is verified, and the policy of that place."""

    at: datetime
    audience: str
    run: RunId | None = None  # the only run that may make it; None: any
    policy: ToolPolicy = ANY_GRANT
    skew: timedelta = SKEW
    fresh_for: timedelta = FRESH_FOR


def verify_call(
    token: str,
    call: Call,
    *,
    root_key: PublicKey,
    audience: str,
    at: datetime,
    revocations: str | None,
    proofs: Proofs | None,
    acts_on: Call | None = None,
    run: RunId | None = None,
    policy: ToolPolicy = ANY_GRANT,
) -> Permitted:
    """Verify a call and return who may make it, or refuse it with a sentence for the caller.

    Each step has its own error.

    `call` is the call as it was sent; the proof is about it. `acts_on` is the same call after links and `..` were
    resolved; that must be granted. Without `revocations`, the newest list, a revoked grant works until its certificate
    ends. Without `proofs`, a token works more than once.
    """
    chain_text, proof_text = split_token(token)
    proof = decode_proof(proof_text)
    # A strong key only: under a key of small order, anybody can make signatures that fit.
    chain = verify_chain(decode_chain(chain_text), require_strong(root_key), is_signed, most_hops=MOST_HOPS)
    require_timely(chain, at)
    number = None if revocations is None else _require_unrevoked(chain, revocations, root_key, at)
    asked = VerificationContext(at=at, audience=audience, run=run, policy=policy)
    return permit(chain, proof, call, acts_on or call, asked=asked, proofs=proofs, revocations=number)


def permit(
    chain: VerifiedChain,
    proof: Signed[Proof],
    call: Call,
    acts_on: Call,
    *,
    asked: VerificationContext,
    proofs: Proofs | None,
    revocations: int | None,
) -> Permitted:
    """Verify a call under a chain that is in force: the steps from the proof on. Each step has its own error."""
    require_fresh(chain, proof.said, asked.at, skew=asked.skew, fresh_for=asked.fresh_for)
    # The proof is about the call as it was sent: its sender cannot know where links lead on the verifier's disk. From
    # here on, what counts is where they do lead.
    require_context(chain, proof.said, call=digest_call(call), audience=asked.audience, run=asked.run)
    require_possession(chain, proof, is_signed)
    require_taken(chain, acts_on, asked.at, asked.policy)
    permits = authorise(chain.terms, acts_on, asked.at)
    if proofs is not None:
        # Last, so that a call that is refused for another reason can be repeated with the same proof.
        proofs.require_new(proof.digest, proof.said.at + asked.fresh_for, asked.at)
    return Permitted(
        agent=chain.agent,
        principal=chain.principal,
        run=chain.certificate.run,
        permits=permits,
        limits=chain.limits,
        revocations=revocations,
    )


def _require_unrevoked(chain: VerifiedChain, text: str, root_key: PublicKey, at: datetime) -> int:
    enrolments, given = decode_revocations(text)
    found = verify_revocations(given, enrolments, root_key, is_signed)
    require_good(found, at)
    require_unrevoked(chain, names_in(found))
    return found.number
