"""Verifies a chain of grants with only the root key.

The steps and their numbers are those of docs/spec/grant.md, section 7. Each has an error of its own. `verify_chain`
does the steps that depend only on the bytes, once for a chain. The steps that depend on the time, the revocations and
the call are done for each call.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, TypeAlias

from batonpass.errors import (
    GrantBackdatedError,
    GrantChainError,
    GrantDepthError,
    GrantExpiredError,
    GrantIntegrityError,
    GrantNotYetValidError,
    GrantPolicyError,
    GrantRevokedError,
    GrantRootError,
)
from batonpass.model.base.ids import AgentId, Digest, KeyId, PrincipalId, PublicKey
from batonpass.model.base.value import Value
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Certificate, Chain, Purpose, RelayEnrolment, Signed, Statement, Terms
from batonpass.model.grants.limits import UNLIMITED, Limits
from batonpass.model.grants.permit import spell_time
from batonpass.model.grants.scope import Scope
from batonpass.wire.grant_statements import signing_bytes

SKEW: Final = timedelta(seconds=30)  # how much honest clocks may differ
MOST_HOPS: Final = 32

# Returns whether the signature is the public key's over the message: (public key, message, signature).
SignatureCheck: TypeAlias = Callable[[bytes, bytes, bytes], bool]
Enrolled: TypeAlias = Mapping[KeyId, RelayEnrolment]


class VerifiedChain(Value, frozen=True, kw_only=True):
    """A chain whose bytes are authentic. Whether it is in force, and covers a call, is checked for each call."""

    terms: tuple[Terms, ...]
    certificate: Certificate
    digest: Digest  # of the certificate
    begins: datetime
    ends: datetime
    limits: Limits  # the lowest of all hops
    names: frozenset[str]  # every name under which it could be revoked: keys, terms and runs

    @property
    def agent(self) -> AgentId:
        """Return the agent that acts."""
        return self.terms[-1].agent

    @property
    def principal(self) -> PrincipalId:
        """Return the principal on whose behalf it acts."""
        return self.terms[-1].principal


class ToolPolicy(Value, frozen=True, kw_only=True):
    """The calls that a verifier accepts at all, under any grant. None accepts everything."""

    ceiling: Scope | None = None
    principals: frozenset[PrincipalId] | None = None
    agents: frozenset[AgentId] | None = None
    lifetime: timedelta | None = None  # of a certificate, at most


ANY_GRANT: Final = ToolPolicy()


def key_id(public_key: PublicKey) -> KeyId:
    """Return the id of a public key."""
    return KeyId(sha256(bytes.fromhex(public_key)).hexdigest())


def verify_enrolments(
    enrolments: tuple[Signed[RelayEnrolment], ...], root_key: PublicKey, is_signed: SignatureCheck
) -> Enrolled:
    """Return the enrolments that the root key has signed, by key: step 2.

    Raises `GrantRootError` and `GrantIntegrityError`.
    """
    root = key_id(root_key)
    found: dict[KeyId, RelayEnrolment] = {}
    for enrolment in enrolments:
        if enrolment.said.key != root:
            raise GrantRootError(
                f"the grant comes from another ledger: its root key is {enrolment.said.key[:16]}, "
                f"and {root[:16]} is known here"
            )
        _require_signed(enrolment, root_key, is_signed)
        found[key_id(enrolment.said.public_key)] = enrolment.said
    return found


def verify_chain(
    chain: Chain, root_key: PublicKey, is_signed: SignatureCheck, *, skew: timedelta = SKEW, most_hops: int = MOST_HOPS
) -> VerifiedChain:
    """Verify the bytes of a chain, steps 2 to 6, and return its statements. They depend on no time and no call.

    Raises `GrantRootError`, `GrantIntegrityError`, `GrantChainError`, `GrantDepthError` and `GrantBackdatedError`.
    """
    enrolled = verify_enrolments(chain.enrolments, root_key, is_signed)
    signed: tuple[Signed[Terms | Certificate], ...] = (*chain.terms, chain.certificate)
    # Signatures before links and dates: until a statement is known to be signed by an enrolled key, its fields are only
    # claims of whoever sent it.
    keys = [require_enrolled(part.said.key, enrolled, Purpose.GRANT).public_key for part in signed]
    for part, key in zip(signed, keys, strict=True):
        _require_signed(part, key, is_signed)
    _require_linked(chain)
    _require_shallow(chain.terms, most_hops)
    _require_in_order(chain, enrolled, skew)
    said = tuple(part.said for part in chain.terms)
    certificate = chain.certificate.said
    limits = UNLIMITED
    for terms in said:
        limits = limits.meet(terms.limits)
    used = {part.said.key for part in signed}
    names = {certificate.run, *used, *(part.digest for part in chain.terms)}
    return VerifiedChain(
        terms=said,
        certificate=certificate,
        digest=chain.certificate.digest,
        # The chain is in force only while all of its parts are: it begins with the latest start and ends with the
        # earliest end.
        begins=max(certificate.valid_from, *(terms.at for terms in said), *(enrolled[key].at for key in used)),
        ends=min([certificate.valid_until, *(terms.until for terms in said if terms.until is not None)]),
        limits=limits,
        names=frozenset(names | {terms.run for terms in said if terms.run is not None}),
    )


def require_enrolled(key: KeyId, enrolled: Enrolled, purpose: Purpose) -> RelayEnrolment:
    """Return the enrolment of a key for a purpose: step 2. Raises `GrantRootError`."""
    found = enrolled.get(key)
    if found is None or purpose not in found.purposes:
        raise GrantRootError(f"the root key has not enrolled key {key[:16]} to {purpose}; ask for a new grant")
    return found


def require_timely(chain: VerifiedChain, at: datetime, *, skew: timedelta = SKEW) -> None:
    """Refuse a chain that is not in force at this time: step 7.

    Raises `GrantExpiredError` and `GrantNotYetValidError`.
    """
    if at >= chain.ends:
        raise GrantExpiredError(f"the grant ended at {spell_time(chain.ends)}, and it is {spell_time(at)}; renew it")
    # Skew is granted at the start only: a clock that is ahead when signing is harmless, but an ended grant must stay
    # ended.
    if at < chain.begins - skew:
        raise GrantNotYetValidError(
            f"the grant begins at {spell_time(chain.begins)}, and it is {spell_time(at)}; compare the clocks"
        )


def require_unrevoked(chain: VerifiedChain, revoked: frozenset[str]) -> None:
    """Refuse a chain if any part of it was revoked: step 8. Raises `GrantRevokedError`."""
    if not revoked.isdisjoint(chain.names):
        first = min(revoked & chain.names)
        raise GrantRevokedError(
            f"{first} was revoked, and with it everything that was granted from it; ask for a new grant"
        )


def require_taken(chain: VerifiedChain, call: Call, at: datetime, policy: ToolPolicy) -> None:
    """Refuse a grant that the verifier's own policy does not accept: step 11. Raises `GrantPolicyError`."""
    if policy.principals is not None and chain.principal not in policy.principals:
        raise GrantPolicyError(f"nothing is done here on behalf of {chain.principal}")
    if policy.agents is not None and chain.agent not in policy.agents:
        raise GrantPolicyError(f"{chain.agent} is not served here")
    certificate = chain.certificate
    if policy.lifetime is not None and certificate.valid_until - certificate.valid_from > policy.lifetime:
        raise GrantPolicyError(f"certificates are taken here for at most {policy.lifetime}; ask for a shorter one")
    if policy.ceiling is not None and not policy.ceiling.allows(call, at):
        raise GrantPolicyError(f"{call} is not done here for anybody: {policy.ceiling} is")


def _require_signed(part: Signed[Statement], public_key: PublicKey, is_signed: SignatureCheck) -> None:
    if not is_signed(bytes.fromhex(public_key), signing_bytes(part.payload), part.signature):
        what = type(part.said).__name__
        raise GrantIntegrityError(f"a signature under the grant's {what} does not match it: it was changed or made up")


def _require_linked(chain: Chain) -> None:
    """Refuse terms that do not name the terms before them, and a certificate for other terms than the last: step 4."""
    first = chain.terms[0].said
    above = None
    for part in chain.terms:
        if part.said.parent != above:
            raise GrantChainError(f"the terms of {part.said.agent} do not hang from the ones before them")
        # A relay signs with one key for every tree and every principal. So a good signature and a good link do not show
        # yet that both terms are of the same ones.
        if (part.said.root, part.said.principal) != (first.root, first.principal):
            raise GrantChainError(f"the terms of {part.said.agent} belong to another tree, or another principal")
        above = part.digest
    if chain.certificate.said.terms != above:
        raise GrantChainError("the certificate is not for the last terms of the chain")


def _require_shallow(terms: tuple[Signed[Terms], ...], most_hops: int) -> None:
    """Refuse a chain that is deeper than its own terms or the verifier allow: step 5."""
    depth = len(terms) - 1
    # Terms may leave `max_depth` out, so the verifier needs a bound of its own.
    if len(terms) > most_hops:
        raise GrantDepthError(f"the chain has {len(terms)} hops, and {most_hops} are taken here")
    for part in terms:
        if part.said.max_depth is not None and depth > part.said.max_depth:
            raise GrantDepthError(
                f"the chain goes to depth {depth}, and the terms of {part.said.agent} allow {part.said.max_depth}"
            )


def _require_in_order(chain: Chain, enrolled: Enrolled, skew: timedelta) -> None:
    """Refuse a part that is dated before the part above it, or outside the lifetime of its key: step 6."""
    before = None
    dated = [(part.said.key, part.said.at) for part in chain.terms]
    for key, at in (*dated, (chain.certificate.said.key, chain.certificate.said.valid_from)):
        enrolment = enrolled[key]
        if before is not None and at < before - skew:
            raise GrantBackdatedError(
                f"a part of the grant is dated {spell_time(at)}, before the one above it ({spell_time(before)})"
            )
        # Whoever stole a key chooses the dates of what it signs. A date outside of the enrolment of the key gives that
        # away.
        if at < enrolment.at - skew or (enrolment.until is not None and at > enrolment.until):
            raise GrantBackdatedError(f"a part of the grant is dated {spell_time(at)}, when its key did not sign here")
        before = at
