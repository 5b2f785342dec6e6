"""One function for a tool server that knows the root key and nothing else."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    GrantContextError,
    GrantDeniedError,
    GrantError,
    GrantExpiredError,
    GrantReplayedError,
    GrantRevokedError,
    GrantRootError,
    StaleRevocationsError,
)
from batonpass.grants.verifier_memory import SeenProofs
from batonpass.guard import Permitted, verify_call
from batonpass.model.grants.call import Call
from tests.unit.grants.world import AUDIENCE, HOUR, ROOT, THIEF, WRITE, World, a_run

SECRET = replace(WRITE, resource=".github/ci.yml")


def verify(world: World, token: str, call: Call = WRITE, **given: object) -> Permitted:
    """Verify a call as a server would that has seen nothing before."""
    asked: dict[str, object] = {
        "root_key": ROOT.public_key,
        "audience": AUDIENCE,
        "at": world.clock.now(),
        "revocations": None,
        "proofs": None,
    }
    return verify_call(token, call, **{**asked, **given})  # type: ignore[arg-type]  # each has its own type


def test_it_says_what_a_verifier_says() -> None:
    """A server that asks once learns what one that stays learns."""
    world = World()
    token = world.token(world.chain())

    assert world.verifier().verify_call(token, WRITE) == verify(world, token)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        pytest.param({"root_key": THIEF.public_key}, GrantRootError, id="another ledger's root key"),
        pytest.param({"audience": "https://elsewhere.example"}, GrantContextError, id="for another server"),
        pytest.param({"run": a_run(7)}, GrantContextError, id="another run was expected"),
        pytest.param({"call": SECRET}, GrantContextError, id="another call than the proof is about"),
        pytest.param({"acts_on": SECRET}, GrantDeniedError, id="a link that leads to what was not granted"),
    ],
)
def test_what_does_not_hold_is_refused(given: dict[str, object], refused: type[GrantError]) -> None:
    """Each thing that can be wrong has an error of its own."""
    world = World()
    token = world.token(world.chain())

    with pytest.raises(refused):
        verify(world, token, **given)  # type: ignore[arg-type]  # as above


def test_what_has_ended_is_refused() -> None:
    """The moment is the caller's, and a token of yesterday is none today."""
    world = World()
    later: datetime = world.clock.now() + 24 * HOUR

    with pytest.raises(GrantExpiredError):
        verify(world, world.token(world.chain()), at=later)


def test_a_token_works_once_where_somebody_remembers() -> None:
    """With a memory of proofs the second showing of one is refused."""
    world = World()
    token = world.token(world.chain())
    seen = SeenProofs()
    verify(world, token, proofs=seen)

    with pytest.raises(GrantReplayedError):
        verify(world, token, proofs=seen)


def test_what_was_revoked_is_refused() -> None:
    """A run on the list takes all that hangs from it along, and the list that let a call through is named."""
    world = World()
    token = world.token(world.chain())

    assert 3 == verify(world, token, revocations=world.revocations(3)).revocations
    with pytest.raises(GrantRevokedError):
        verify(world, token, revocations=world.revocations(4, runs=frozenset({a_run(0)})))


def test_a_list_that_is_too_old_lets_nothing_through() -> None:
    """Whoever keeps new lists away gains nothing by it."""
    world = World()
    listed = world.revocations(1)
    world.clock.tick(timedelta(days=2))

    with pytest.raises(StaleRevocationsError):
        verify(world, world.token(world.chain()), revocations=listed)
