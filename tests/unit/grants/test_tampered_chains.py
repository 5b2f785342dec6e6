"""Chains that somebody tampered with: each way to do it has a code of its own, and none gets through."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    GrantBackdatedError,
    GrantChainError,
    GrantDepthError,
    GrantError,
    GrantExpiredError,
    GrantIntegrityError,
    GrantPossessionError,
    GrantRootError,
)
from batonpass.model.grants.grant import Chain
from tests.unit.grants.world import (
    HOUR,
    OTHER_RELAY,
    RELAY,
    THIEF,
    World,
    a_run,
    may,
    recertified,
    refusal,
    resigned,
    with_last,
)

TAMPERED: dict[str, tuple[Callable[[World, Chain], Chain], type[GrantError]]] = {
    "a hop is left out": (
        lambda _, chain: replace(chain, terms=(chain.terms[0], chain.terms[2])),
        GrantChainError,
    ),
    "the first hop is left out": (lambda _, chain: replace(chain, terms=chain.terms[1:]), GrantChainError),
    "the last hop is left out": (lambda _, chain: replace(chain, terms=chain.terms[:-1]), GrantChainError),
    "hops change places": (
        lambda _, chain: replace(chain, terms=(chain.terms[0], chain.terms[2], chain.terms[1])),
        GrantChainError,
    ),
    "a hop is doubled": (
        lambda _, chain: replace(chain, terms=(chain.terms[0], chain.terms[0], *chain.terms[1:])),
        GrantChainError,
    ),
    "a hop of another chain is spliced in": (
        lambda world, chain: replace(chain, terms=(world.terms([may("write:**")])[0], *chain.terms[1:])),
        GrantChainError,
    ),
    "the certificate of another chain": (
        lambda world, chain: replace(chain, certificate=world.chain(may("write:**")).certificate),
        GrantChainError,
    ),
    "a hop belongs to another tree": (
        lambda world, chain: with_last(world, chain, root=a_run(9)),
        GrantChainError,
    ),
    "a hop names another principal": (
        lambda world, chain: with_last(world, chain, principal="user:eve"),
        GrantChainError,
    ),
    "a thief signs the last terms": (
        lambda _, chain: replace(chain, terms=(*chain.terms[:2], resigned(chain.terms[2], THIEF))),
        GrantRootError,
    ),
    "a thief signs the certificate": (
        lambda _, chain: replace(chain, certificate=recertified(chain.certificate, THIEF)),
        GrantRootError,
    ),
    "a thief enrols itself": (
        lambda world, chain: replace(chain, enrolments=(world.enrol(RELAY, root=THIEF),)),
        GrantRootError,
    ),
    "a thief signs in the root key's name": (
        lambda _, chain: replace(
            chain, enrolments=(replace(chain.enrolments[0], signature=THIEF.sign(chain.enrolments[0].payload)),)
        ),
        GrantIntegrityError,
    ),
    "a thief signs in the relay's name": (
        lambda _, chain: replace(
            chain, certificate=replace(chain.certificate, signature=THIEF.sign(chain.certificate.payload))
        ),
        GrantIntegrityError,
    ),
    "signatures change places": (
        lambda _, chain: replace(
            chain,
            terms=(chain.terms[0], replace(chain.terms[1], signature=chain.terms[2].signature), chain.terms[2]),
        ),
        GrantIntegrityError,
    ),
    "a relay whose enrolment is not shown": (
        lambda world, chain: replace(chain, enrolments=(world.enrol(OTHER_RELAY),)),
        GrantRootError,
    ),
    "the certificate is for another key": (
        lambda _, chain: replace(chain, certificate=recertified(chain.certificate, run_key=THIEF.public_key)),
        GrantPossessionError,
    ),
    "terms that are older than their parent": (
        lambda world, chain: with_last(world, chain, at=world.clock.now() - HOUR),
        GrantBackdatedError,
    ),
    "terms of tomorrow": (
        lambda world, chain: with_last(world, chain, at=world.clock.now() + HOUR),
        GrantBackdatedError,  # the certificate is then older than its terms
    ),
    "terms that ended": (
        lambda world, chain: with_last(world, chain, until=world.clock.now()),
        GrantExpiredError,
    ),
    "deeper than the first terms allow": (
        lambda world, _: _deeper(world),
        GrantDepthError,
    ),
}


def _deeper(world: World) -> Chain:
    first, second, third = world.terms([may("write:**")] * 3)
    first = resigned(first, max_depth=1)
    second = resigned(second, parent=first.digest)
    terms = (first, second, resigned(third, parent=second.digest))
    return replace(world.chain(), terms=terms, certificate=world.certify(terms))


@pytest.mark.parametrize(("tamper", "error"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_chain_that_was_tampered_with(tamper: Callable[[World, Chain], Chain], error: type[GrantError]) -> None:
    """Each way to change a chain has its own code, and none gets through."""
    world = World()

    assert error is refusal(world, tamper(world, world.chain()))
