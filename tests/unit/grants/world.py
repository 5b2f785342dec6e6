"""A root key, two relays, a run and chains of any length: everything that grants need, without a ledger."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import pytest
from msgspec.structs import replace

from batonpass.errors import GrantError
from batonpass.grants.issuer import Issuer, enrol, prove, revoke, sign
from batonpass.grants.verifier import Verifier
from batonpass.guard.grants.grant_chain import ANY_GRANT, ToolPolicy
from batonpass.model.base.ids import AgentId, Digest, HandoffId, KeyId, LedgerId, PrincipalId, RelayId, RunId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Certificate, Chain, Grant, RelayEnrolment, Signed, Terms
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.ledger.key import Signer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing import FrozenClock
from batonpass.wire.token import encode_chain, encode_proof, encode_revocations, join_token

ANA: Final = PrincipalId("user:ana")
AUDIENCE: Final = "https://tools.example"
HOUR: Final = timedelta(hours=1)

ROOT: Final = Ed25519Signer(b"r" * 32)
RELAY: Final = Ed25519Signer(b"y" * 32)
OTHER_RELAY: Final = Ed25519Signer(b"o" * 32)
RUN: Final = Ed25519Signer(b"u" * 32)
THIEF: Final = Ed25519Signer(b"t" * 32)

WRITE: Final = Call("write_file", "write", "src/invoice.py", {"path": "src/invoice.py", "text": "x", "ratio": 0.5})


def an_id(prefix: str, number: int) -> str:
    """Return an id that is always the same."""
    return f"{prefix}_{number:026d}"


def a_run(number: int) -> RunId:
    """Return the run that works at a depth."""
    return RunId(an_id("run", number))


def may(*lines: str) -> Grant:
    """Return a grant with both rights for the same permits."""
    return Grant(may=read_scope(lines), may_delegate=read_scope(lines))


class World:
    """Issues chains at noon."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.issuer = Issuer(RELAY, self.clock)
        self.enrolment = self.enrol(RELAY)

    def enrol(self, relay: Signer, *, root: Signer = ROOT, may_revoke: bool = False) -> Signed[RelayEnrolment]:
        """Return the enrolment of a relay's key."""
        return enrol(
            relay.public_key,
            ledger=LedgerId(an_id("ledger", 1)),
            relay=RelayId(an_id("relay", 1)),
            root=root,
            at=self.clock.now(),
            may_revoke=may_revoke,
        )

    def terms(self, grants: Sequence[Grant]) -> tuple[Signed[Terms], ...]:
        """Return terms, each of a child of the one before."""
        first, *asked = grants
        terms = [self.issuer.begin(first, agent=AgentId("lead"), principal=ANA, root=a_run(0))]
        for depth, grant in enumerate(asked):
            terms.append(
                self.issuer.hand_off(
                    terms[-1],
                    grant,
                    depth=depth,
                    agent=AgentId(f"editor{depth + 1}"),
                    handoff=HandoffId(an_id("handoff", depth + 1)),
                    run=a_run(depth),
                )
            )
        return tuple(terms)

    def certify(self, terms: Sequence[Signed[Terms]]) -> Signed[Certificate]:
        """Return the certificate of whoever works under the last terms."""
        depth = len(terms) - 1
        return self.issuer.certify(
            terms[-1],
            run=a_run(depth),
            attempt=1 if depth else 0,
            epoch=1,
            run_key=RUN.public_key,
            valid_for=timedelta(minutes=5),
        )

    def chain(self, *grants: Grant) -> Chain:
        """Return a chain of these grants, or one of three hops."""
        terms = self.terms(grants or (may("write:src/**", "read:**"), may("write:src/**"), may("write:src/*")))
        return Chain(enrolments=(self.enrolment,), terms=terms, certificate=self.certify(terms))

    def token(self, chain: Chain, call: Call = WRITE, *, audience: str = AUDIENCE, key: Signer = RUN) -> str:
        """Return what a client sends with a call."""
        proof = prove(call, chain.certificate, run_key=key, audience=audience, at=self.clock.now())
        return join_token(encode_chain(chain), encode_proof(proof))

    def verifier(self, *, revocations: bool = False, policy: ToolPolicy = ANY_GRANT, most_hops: int = 32) -> Verifier:
        """Return somebody who knows the root key and nothing else."""
        return Verifier(
            ROOT.public_key,
            audience=AUDIENCE,
            revocations=revocations,
            policy=policy,
            clock=self.clock,
            most_hops=most_hops,
        )

    def revocations(
        self,
        number: int = 1,
        *,
        signer: Signer = ROOT,
        enrolments: tuple[Signed[RelayEnrolment], ...] = (),
        terms: frozenset[Digest] = frozenset(),
        runs: frozenset[RunId] = frozenset(),
        keys: frozenset[KeyId] = frozenset(),
    ) -> str:
        """Return a list of revocations that is good for an hour."""
        made = revoke(number, signer=signer, at=self.clock.now(), good_for=HOUR, terms=terms, runs=runs, keys=keys)
        return encode_revocations(made, enrolments)


def resigned(part: Signed[Terms], signer: Signer = RELAY, **changed: object) -> Signed[Terms]:
    """Return terms that say something else, signed as if a relay meant it."""
    return sign(replace(part.said, key=signer.key, **changed), signer)


def recertified(part: Signed[Certificate], signer: Signer = RELAY, **changed: object) -> Signed[Certificate]:
    """Return a certificate that says something else, signed as if a relay meant it."""
    return sign(replace(part.said, key=signer.key, **changed), signer)


def with_last(world: World, chain: Chain, **changed: object) -> Chain:
    """Return a chain whose last terms say something else, signed as if a relay meant it."""
    terms = (*chain.terms[:2], resigned(chain.terms[2], RELAY, **changed))
    return replace(chain, terms=terms, certificate=world.certify(terms))


def refusal(world: World, chain: Chain, call: Call = WRITE) -> type[GrantError]:
    """Return with which error a call under a chain is refused."""
    with pytest.raises(GrantError) as caught:
        world.verifier().verify_call(world.token(chain, call), call)
    return type(caught.value)
