"""What a verifier remembers is bounded, and forgetting is never to the advantage of a thief."""

from datetime import timedelta

import pytest

from batonpass.errors import GrantReplayedError
from batonpass.grants.verifier_memory import Remembered, SeenProofs
from batonpass.testing.clock import NOON

SOON = NOON + timedelta(seconds=60)


def test_the_one_that_nobody_asked_for_goes_first() -> None:
    """Only so many are kept, and those in use stay."""
    remembered: Remembered[int] = Remembered(2)
    for key, value in (("a", 1), ("b", 2)):
        remembered.keep(key, value)
    remembered.find("a")
    remembered.keep("c", 3)

    assert (1, None, 3) == (remembered.find("a"), remembered.find("b"), remembered.find("c"))
    assert 2 == len(remembered)


def test_a_proof_is_remembered_for_as_long_as_it_could_be_shown() -> None:
    """Afterwards its age is enough to refuse it."""
    seen = SeenProofs(most=1)
    seen.require_new("a", SOON, NOON)

    with pytest.raises(GrantReplayedError, match="shown before"):
        seen.require_new("a", SOON, SOON)
    seen.require_new("b", SOON + timedelta(seconds=60), SOON + timedelta(microseconds=1))


def test_without_room_everything_is_refused() -> None:
    """A flood of proofs must not make the verifier forget one of them."""
    seen = SeenProofs(most=2)
    for proof in ("a", "b"):
        seen.require_new(proof, SOON, NOON)

    with pytest.raises(GrantReplayedError, match="try again"):
        seen.require_new("c", SOON, NOON)
    with pytest.raises(GrantReplayedError, match="shown before"):
        seen.require_new("a", SOON, NOON)
