"""The offline verifier: a tool server asks whether a call may be made, without asking any relay or ledger."""

import threading
from datetime import datetime, timedelta
from typing import Final

from batonpass.clock import Clock, SystemClock
from batonpass.grants.verifier_memory import Remembered, SeenProofs
from batonpass.guard.grants.call_verification import Permitted, VerificationContext, permit
from batonpass.guard.grants.grant_chain import (
    ANY_GRANT,
    MOST_HOPS,
    SKEW,
    ToolPolicy,
    VerifiedChain,
    require_timely,
    require_unrevoked,
    verify_chain,
)
from batonpass.guard.grants.possession import FRESH_FOR
from batonpass.guard.grants.revocation import names_in, newer_of, require_good, verify_revocations
from batonpass.model.base.ids import PublicKey, RunId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Revocations
from batonpass.signing.ed25519 import is_signed, require_strong
from batonpass.wire.token import decode_chain, decode_proof, decode_revocations, split_token

_CHAINS: Final = 1024
_SIGNATURES: Final = 8192
_NONE: Final[frozenset[str]] = frozenset()


class Verifier:
    """Verifies calls for one audience, offline. Safe for threads.

    `revocations` says whether a list of revocations is required. With `True`, every call is refused until
    `use_revocations` got a list, and again after the best-before of that list. With `False`, a revoked grant works
    until its certificate ends.
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
        """Use this list of revocations from now on, if it is newer than the present one. Return the list that counts.

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
        """Return the grant that a chain proves now: steps 1 to 8, without the proof of a call.

        Each step raises an error of its own.
        """
        chain = self._read_chain(text)
        self._require_in_force(chain, self._clock.now())
        return chain

    def verify_call(
        self, token: str, call: Call, *, acts_on: Call | None = None, run: RunId | None = None
    ) -> Permitted:
        """Return the permission for a call after all steps. Each step raises an error with a sentence for the caller.

        `call` is the call as it was sent; the proof is about that one. `acts_on` is the same call after links and `..`
        were resolved; the grant has to cover that one.
        """
        chain_text, proof_text = split_token(token)
        proof = decode_proof(proof_text)
        chain = self._read_chain(chain_text)
        at = self._clock.now()
        self._require_in_force(chain, at)
        asked = VerificationContext(
            at=at,
            audience=self._audience,
            run=run,
            policy=self._policy,
            skew=self._skew,
            fresh_for=self._fresh_for,
        )
        number = None if self._list is None else self._list[0].number
        return permit(chain, proof, call, acts_on or call, asked=asked, proofs=self._proofs, revocations=number)

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
        # Only valid signatures are remembered, so nobody without an enrolled key can push others out of the memory.
        known = (public_key, message)
        if self._signatures.find(signature) == known:
            return True
        if not is_signed(public_key, message, signature):
            return False
        self._signatures.keep(signature, known)
        return True
