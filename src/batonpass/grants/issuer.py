"""Issuing: a relay signs terms and certificates, the root key enrols relays, and a run proves its calls."""

import os
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from typing import TypeVar

from batonpass.clock import Clock
from batonpass.errors import KeyRefusedError
from batonpass.guard.grants.narrower_terms import narrow
from batonpass.model.base.ids import AgentId, Digest, HandoffId, KeyId, LedgerId, PrincipalId, PublicKey, RelayId, RunId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import (
    Certificate,
    Grant,
    Proof,
    Purpose,
    RelayEnrolment,
    Revocations,
    Signed,
    Statement,
    Terms,
)
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import require_strong
from batonpass.wire.call_digest import digest_call
from batonpass.wire.canonical import digest
from batonpass.wire.grant_statements import encode_statement, signing_bytes

Said = TypeVar("Said", bound=Statement)

_NONCE_BYTES = 16


def sign(statement: Said, signer: Signer) -> Signed[Said]:
    """Return a signed statement. Raises `KeyRefusedError` if the statement names a key other than the signer's."""
    if not isinstance(statement, Proof) and statement.key != signer.key:
        raise KeyRefusedError(f"the statement names key {statement.key[:16]}, and {signer.key[:16]} was to sign it")
    payload = encode_statement(statement)
    return Signed(statement, payload, signer.sign(signing_bytes(payload)), digest(payload))


class Issuer:
    """Issues grants with the key of one relay."""

    def __init__(self, signer: Signer, clock: Clock) -> None:
        self._signer = signer
        self._clock = clock

    def begin(
        self,
        grant: Grant,
        *,
        agent: AgentId,
        principal: PrincipalId,
        root: RunId,
        handoff: HandoffId | None = None,
        run: RunId | None = None,
    ) -> Signed[Terms]:
        """Return the first terms of a chain: for a root run, or for a handoff by an observed run."""
        return self._terms(grant, agent=agent, principal=principal, root=root, handoff=handoff, run=run)

    def hand_off(
        self,
        parent: Signed[Terms],
        asked: Grant,
        *,
        depth: int,
        agent: AgentId,
        handoff: HandoffId,
        run: RunId,
    ) -> Signed[Terms]:
        """Return the terms of a handoff, never wider than those of its parent.

        `depth` is the place of the parent terms in their chain. Raises `GrantExceededError` and `GrantDepthError`.
        """
        above = parent.said
        return self._terms(
            narrow(above, asked, depth=depth),
            agent=agent,
            principal=above.principal,
            root=above.root,
            handoff=handoff,
            run=run,
            parent=parent.digest,
        )

    def certify(
        self,
        terms: Signed[Terms],
        *,
        run: RunId,
        attempt: int,
        epoch: int,
        run_key: PublicKey,
        valid_for: timedelta,
        at: datetime | None = None,
    ) -> Signed[Certificate]:
        """Return the certificate of one attempt. It is valid for `valid_for`, from `at` on (default: now).

        Under a lease it is renewed with the lease. Raises `KeyRefusedError` for a weak key, with which anybody could
        sign.
        """
        now = at or self._clock.now()
        certificate = Certificate(
            terms=terms.digest,
            run=run,
            attempt=attempt,
            epoch=epoch,
            run_key=require_strong(run_key),
            valid_from=now,
            valid_until=now + valid_for,
            key=self._signer.key,
        )
        return sign(certificate, self._signer)

    def _terms(
        self,
        grant: Grant,
        *,
        agent: AgentId,
        principal: PrincipalId,
        root: RunId,
        handoff: HandoffId | None,
        run: RunId | None,
        parent: Digest | None = None,
    ) -> Signed[Terms]:
        terms = Terms(
            may=grant.may,
            may_delegate=grant.may_delegate,
            limits=grant.limits,
            until=grant.until,
            max_depth=grant.max_depth,
            agent=agent,
            principal=principal,
            root=root,
            at=self._clock.now(),
            key=self._signer.key,
            handoff=handoff,
            run=run,
            parent=parent,
        )
        return sign(terms, self._signer)


def enrol(
    public_key: PublicKey,
    *,
    ledger: LedgerId,
    relay: RelayId,
    root: Signer,
    at: datetime,
    until: datetime | None = None,
    may_revoke: bool = False,
) -> Signed[RelayEnrolment]:
    """Return the root key's signed statement that a key belongs to a relay. Raises `KeyRefusedError` for a weak key."""
    purposes = (Purpose.GRANT, Purpose.REVOKE) if may_revoke else (Purpose.GRANT,)
    enrolment = RelayEnrolment(
        ledger=ledger,
        relay=relay,
        public_key=require_strong(public_key),
        purposes=purposes,
        at=at,
        until=until,
        key=root.key,
    )
    return sign(enrolment, root)


def revoke(
    number: int,
    *,
    signer: Signer,
    at: datetime,
    good_for: timedelta,
    terms: frozenset[Digest] = frozenset(),
    runs: frozenset[RunId] = frozenset(),
    keys: frozenset[KeyId] = frozenset(),
) -> Signed[Revocations]:
    """Return the signed list of everything that is revoked. It replaces all lists with lower numbers."""
    revocations = Revocations(
        number=number,
        at=at,
        best_before=at + good_for,
        key=signer.key,
        terms=tuple(sorted(terms)),
        runs=tuple(sorted(runs)),
        keys=tuple(sorted(keys)),
    )
    return sign(revocations, signer)


def prove(
    call: Call, certificate: Signed[Certificate], *, run_key: Signer, audience: str, at: datetime
) -> Signed[Proof]:
    """Return the proof that a run makes exactly this call now, for one audience."""
    proof = Proof(
        certificate=certificate.digest,
        call=digest_call(call),
        tool=call.tool,
        audience=audience,
        nonce=urlsafe_b64encode(os.urandom(_NONCE_BYTES)).rstrip(b"=").decode(),
        at=at,
    )
    return sign(proof, run_key)
