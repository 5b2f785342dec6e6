"""The offline face: a tool server that knows the root key and nothing else asks whether a call may be made."""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from batonpass.clock import Clock, SystemClock
from batonpass.grants.remembering import Remembered, SeenProofs
from batonpass.guard.authority import authorise
from batonpass.guard.granted import (
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
from batonpass.guard.possession import FRESH_FOR, require_context, require_fresh, require_possession
from batonpass.guard.revocation import names_in, newer_of, require_good, verify_revocations
from batonpass.model.call import Call
from batonpass.model.grant import Revocations
from batonpass.model.ids import AgentId, PrincipalId, PublicKey, RunId
from batonpass.model.limits import Limits
from batonpass.model.permit import Permit
from batonpass.signing.ed25519 import is_signed, require_strong
from batonpass.wire.call_digest import digest_call
from batonpass.wire.token import decode_chain, decode_proof, decode_revocations, split_token

_CHAINS: Final = 1024
_SIGNATURES: Final = 8192
_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """A call that may be made, and who makes it."""

    agent: AgentId
    principal: PrincipalId
    run: RunId
    permits: tuple[Permit, ...]  # what let it through, one of each hop
    limits: Limits  # of all calls together, the least of all hops. Whoever executes has to count; a signature cannot
    revocations: int | None  # the number of the list that was looked at


class Verifier:
    """Verifies calls for one audience. Safe for threads; never asks anybody.

    `revocations` says whether a list is needed: with `True`, nothing is verified before `use_revocations` was given
    one, and nothing after its best-before. With `False`, whatever was revoked works until its certificate ends.
    """

    def __init__(
        self,
        root_key: PublicKey,
        *,
        audience: str,
        revocations: bool,
        policy: ToolPolicy = ANY_GRANT,
        clock: Clock | None = None,
        skew: timedelta = SKEW,
        fresh_for: timedelta = FRESH_FOR,
        most_hops: int = MOST_HOPS,
    ) -> None:
        self._root_key = require_strong(root_key)
        self._audience = audience
        self._needs_list = revocations
        self._policy = policy
        self._clock = clock or SystemClock()
        self._skew = skew
        self._fresh_for = fresh_for
        self._most_hops = most_hops
        self._list: tuple[Revocations, frozenset[str]] | None = None
        self._replacing = threading.Lock()
        self._chains: Remembered[VerifiedChain] = Remembered(_CHAINS)
        self._signatures: Remembered[tuple[bytes, bytes]] = Remembered(_SIGNATURES)
        self._proofs = SeenProofs()

    def use_revocations(self, text: str) -> Revocations:
        """Go by this list from now on, if it is newer than the one before; return the one that counts.

        Raises `StaleRevocationsError`, `GrantRootError`, `GrantIntegrityError` and `GrantMalformedError`.
        """
        enrolments, given = decode_revocations(text)
        found = verify_revocations(given, enrolments, self._root_key, self._is_signed)
        with self._replacing:
            counts = newer_of(found, None if self._list is None else self._list[0])
            require_good(found, self._clock.now(), skew=self._skew)
            self._list = (counts, names_in(counts))
        return counts

    def verify_chain(self, text: str) -> VerifiedChain:
        """Return what a chain proves now: steps 1 to 8, without the proof. Raises an error of its own for each."""
        chain = self._read_chain(text)
        self._require_in_force(chain, self._clock.now())
        return chain

    def verify_call(
        self, token: str, call: Call, *, acts_on: Call | None = None, run: RunId | None = None
    ) -> Permitted:
        """Let a call be made, or refuse it with a sentence for whoever made it: all steps.

        `call` is the call as it was sent, which the proof is about. `acts_on` is the same call as the file system knows
        it, if links and `..` were resolved; that is what has to be granted. Raises an error of its own for each step.
        """
        chain_text, proof_text = split_token(token)
        proof = decode_proof(proof_text)
        chain = self._read_chain(chain_text)
        at = self._clock.now()
        self._require_in_force(chain, at)
        require_fresh(chain, proof.said, at, skew=self._skew, fresh_for=self._fresh_for)
        require_context(chain, proof.said, call=digest_call(call), audience=self._audience, run=run)
        require_possession(chain, proof, is_signed)
        judged = acts_on or call
        require_taken(chain, judged, at, self._policy)
        permits = authorise(chain.terms, judged, at)
        # Last, so that a call which is refused for another reason can be repeated with the same proof.
        self._proofs.require_new(proof.digest, proof.said.at + self._fresh_for, at)
        return Permitted(
            agent=chain.agent,
            principal=chain.principal,
            run=chain.certificate.run,
            permits=permits,
            limits=chain.limits,
            revocations=None if self._list is None else self._list[0].number,
        )

    def _read_chain(self, text: str) -> VerifiedChain:
        known = self._chains.find(text)
        if known is not None:
            return known
        chain = verify_chain(
            decode_chain(text), self._root_key, self._is_signed, skew=self._skew, most_hops=self._most_hops
        )
        return self._chains.keep(text, chain)

    def _require_in_force(self, chain: VerifiedChain, at: datetime) -> None:
        require_timely(chain, at, skew=self._skew)
        if self._needs_list or self._list is not None:
            known, names = self._list or (None, _NONE)
            require_good(known, at, skew=self._skew)
            require_unrevoked(chain, names)

    def _is_signed(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        # Only what is signed is remembered: whoever holds no enrolled key cannot push anything out.
        known = (public_key, message)
        if self._signatures.find(signature) == known:
            return True
        if not is_signed(public_key, message, signature):
            return False
        self._signatures.keep(signature, known)
        return True
