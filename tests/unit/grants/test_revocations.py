"""Revocations: they cascade, they do not go back, and a list that is too old says nothing any more."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    GrantIntegrityError,
    GrantMalformedError,
    GrantNotYetValidError,
    GrantRevokedError,
    GrantRootError,
    GrantTooLargeError,
    StaleRevocationsError,
)
from batonpass.model.grants.grant import Chain
from batonpass.wire.token import LONGEST_LIST, decode_revocations, encode_revocations
from tests.unit.grants.world import HOUR, OTHER_RELAY, RELAY, THIEF, WRITE, World, a_run


def lists(world: World, chain: Chain) -> dict[str, str]:
    """Return lists that name something which a chain hangs from."""
    return {
        "its first terms": world.revocations(2, terms=frozenset({chain.terms[0].digest})),
        "its last terms": world.revocations(2, terms=frozenset({chain.terms[-1].digest})),
        "the root run": world.revocations(2, runs=frozenset({a_run(0)})),
        "the run that handed off": world.revocations(2, runs=frozenset({a_run(1)})),
        "the run itself": world.revocations(2, runs=frozenset({a_run(2)})),
        "the relay's key": world.revocations(2, keys=frozenset({RELAY.key})),
    }


@pytest.mark.parametrize("named", lists(World(), World().chain()))
def test_revoking_cascades(named: str) -> None:
    """Whatever hangs from something that was revoked is revoked with it, also if it was verified before."""
    world = World()
    verifier, chain = world.verifier(revocations=True), world.chain()
    verifier.use_revocations(world.revocations(1, runs=frozenset({a_run(9)})))
    assert 1 == verifier.verify_call(world.token(chain), WRITE).revocations
    verifier.use_revocations(lists(world, chain)[named])

    with pytest.raises(GrantRevokedError):
        verifier.verify_call(world.token(chain), WRITE)


def test_without_a_list_nothing_is_believed() -> None:
    """A server that needs a list and has none refuses everything."""
    world = World()

    with pytest.raises(StaleRevocationsError, match="no list"):
        world.verifier(revocations=True).verify_call(world.token(world.chain()), WRITE)


@pytest.mark.parametrize("needed", [True, False])
def test_a_stale_list_fails_closed(needed: bool) -> None:  # noqa: FBT001 - the example
    """After its best-before nobody knows what was revoked since, so nothing is let through, needed or not."""
    world = World()
    verifier = world.verifier(revocations=needed)
    verifier.use_revocations(world.revocations())
    world.clock.tick(HOUR)

    with pytest.raises(StaleRevocationsError, match="fetch a new one"):
        verifier.verify_call(world.token(world.chain()), WRITE)


def test_a_list_does_not_go_back() -> None:
    """Somebody who hides a revocation by showing an older list, or another of the same number, is refused."""
    world = World()
    verifier = world.verifier(revocations=True)
    older, known = world.revocations(1), world.revocations(2, runs=frozenset({a_run(2)}))
    verifier.use_revocations(known)

    for shown in (older, world.revocations(2)):
        with pytest.raises(StaleRevocationsError, match="is known already"):
            verifier.use_revocations(shown)
    assert 2 == verifier.use_revocations(known).number
    with pytest.raises(GrantRevokedError):
        verifier.verify_call(world.token(world.chain()), WRITE)


def test_the_same_list_is_signed_anew() -> None:
    """A server that fetches every few minutes goes on; an older one of the same number takes nothing back."""
    world = World()
    verifier = world.verifier(revocations=True)
    first = world.revocations(2, runs=frozenset({a_run(9)}))
    verifier.use_revocations(first)
    world.clock.tick(HOUR / 2)
    fresh = verifier.use_revocations(world.revocations(2, runs=frozenset({a_run(9)})))
    assert fresh == verifier.use_revocations(first)
    world.clock.tick(HOUR * 3 / 4)

    assert 2 == verifier.verify_call(world.token(world.chain()), WRITE).revocations


def test_a_list_of_tomorrow_or_of_yesterday_is_not_taken() -> None:
    """A list is looked at by the verifier's own clock when it is given."""
    world = World()
    verifier, listed = world.verifier(revocations=True), world.revocations()

    world.clock.tick(-HOUR)
    with pytest.raises(GrantNotYetValidError):
        verifier.use_revocations(listed)
    world.clock.tick(2 * HOUR)
    with pytest.raises(StaleRevocationsError):
        verifier.use_revocations(listed)


def test_who_may_revoke() -> None:
    """The root key may, and a relay that it lets; a relay that may only grant, or a thief, may not."""
    world = World()
    verifier = world.verifier(revocations=True)
    entitled = world.enrol(OTHER_RELAY, may_revoke=True)

    assert 1 == verifier.use_revocations(world.revocations(signer=OTHER_RELAY, enrolments=(entitled,))).number
    for signer, enrolments in (
        (RELAY, (world.enrolment,)),
        (THIEF, (world.enrol(THIEF, root=THIEF, may_revoke=True),)),
        (OTHER_RELAY, ()),
    ):
        with pytest.raises(GrantRootError):
            verifier.use_revocations(world.revocations(2, signer=signer, enrolments=enrolments))


def test_a_list_that_was_changed_is_not_taken() -> None:
    """The signature is over every byte of it."""
    world = World()
    _, listed = decode_revocations(world.revocations())
    other = decode_revocations(world.revocations(2))[1]

    with pytest.raises(GrantIntegrityError):
        world.verifier(revocations=True).use_revocations(encode_revocations(replace(other, signature=listed.signature)))


@pytest.mark.parametrize("wrong", ["", "AAAA", "é", "a.b"])
def test_what_is_no_list(wrong: str) -> None:
    """Something else is refused as what it is."""
    with pytest.raises(GrantMalformedError):
        World().verifier(revocations=True).use_revocations(wrong)


def test_a_list_has_a_size() -> None:
    """Nobody unpacks more than so much."""
    with pytest.raises(GrantTooLargeError):
        World().verifier(revocations=True).use_revocations("A" * (LONGEST_LIST + 1))


def test_a_revoked_grant_works_elsewhere_until_its_certificate_ends() -> None:
    """A server that asks for no list is told by nobody; that is what short certificates are for."""
    world = World()
    verifier, chain = world.verifier(revocations=False), world.chain()

    assert verifier.verify_call(world.token(chain), WRITE).revocations is None
    assert chain.certificate.said.valid_until - world.clock.now() == timedelta(minutes=5)
