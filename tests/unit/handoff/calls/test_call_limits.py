"""What a run uses up besides its calls: counted for everybody above it, and refused once nothing is left."""

from datetime import timedelta
from decimal import Decimal

import pytest

from batonpass import Brief, Grant
from batonpass.errors import ConstraintViolatedError, GrantRevokedError, InvalidValueError
from batonpass.model.baton.baton import Budget
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from tests.unit.handoff.places import ANA, Disk, Places, bodies, denials, receipts, words


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return the relay of one process."""
    return places.relay()


def test_tokens_are_counted_for_everybody_above(places: Places, relay: Relay) -> None:
    """A child uses up what its lead may; then neither goes on, in whichever process."""
    lead = relay.start(
        "Fix it", by=ANA, grant=Grant(may=["write:**"], may_delegate=["write:**"], limits="at most 1000 tokens")
    )
    child = lead.hand_off("editor", "Edit", may=["write:**"]).accept()
    child.spend(tokens=600, on="some-model")
    child.require_room()
    lead.spend(tokens=700)
    for run in (child, lead):
        with pytest.raises(ConstraintViolatedError, match="at most 1000 tokens is violated: 1300 are used"):
            run.require_room()
    with pytest.raises(ConstraintViolatedError):
        child.call(Disk().write, "a", "")
    with pytest.raises(ConstraintViolatedError):
        places.relay().resume(lead.id).require_room()

    assert [600, 700] == [body.tokens for body in bodies(relay, Kind.RUN_SPENT)]
    assert "some-model" == words(relay, receipts(relay, Kind.RUN_SPENT)[0], "on")
    assert {"limit"} == {rule for rule, _ in denials(relay)}


def test_money_is_counted_as_that_of_calls(relay: Relay) -> None:
    """In millionths, against a budget as against a grant."""
    lead = relay.start("Fix it", by=ANA, mode="enforced")
    handoff = lead.hand_off("editor", "Edit", brief=Brief(budget=Budget(cost=30_000)))
    handoff.approve(by=ANA)
    child = handoff.accept()
    child.spend(cost="0.02")
    child.require_room()
    child.spend(cost=Decimal("0.01"))
    with pytest.raises(ConstraintViolatedError, match=r"at most 0\.03 spend"):
        child.require_room()

    assert (True, False) == (child.is_limited("spend"), child.is_limited("tokens"))


def test_time_passes_for_everybody_above(places: Places) -> None:
    """A grant of a minute is over after a minute, for who has it and for everybody below, also for their models."""
    clock = FrozenClock()
    relay = places.relay(clock=clock)
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 60 seconds"))
    child, disk = lead.hand_off("editor", "Edit", may=["write:**"]).accept(), Disk()
    clock.tick(timedelta(seconds=59))
    child.call(disk.write, "a", "")
    child.require_room()
    clock.tick(timedelta(seconds=1))

    with pytest.raises(ConstraintViolatedError, match="at most 60 seconds is violated: 60 have passed"):
        child.call(disk.write, "b", "")
    with pytest.raises(ConstraintViolatedError, match="60 have passed"):
        child.require_room()
    assert [("a", "")] == disk.written


def test_whoever_is_only_watched_goes_on(relay: Relay) -> None:
    """What is used is recorded all the same; nothing used is nothing to record."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may=["write:**"], limits="at most 10 tokens"), mode="observed")
    lead.spend(tokens=0)
    lead.spend(tokens=20)
    lead.require_room()

    assert ([20], []) == ([body.tokens for body in bodies(relay, Kind.RUN_SPENT)], denials(relay))


def test_what_was_revoked_asks_no_model_any_more(relay: Relay) -> None:
    """It stops before the next answer, and not only at the next call."""
    lead = relay.start("Fix it", by=ANA, may=["write:**"])
    relay.revoke_grant(lead.id, by=ANA, reason="no")
    with pytest.raises(GrantRevokedError):
        lead.require_room()


@pytest.mark.parametrize("wrong", [{"tokens": -1}, {"tokens": 1.5}, {"cost": "a lot"}, {"cost": None}])
def test_what_is_no_amount_is_refused(relay: Relay, wrong: dict[str, object]) -> None:
    """Nothing is recorded."""
    lead = relay.start("Fix it", by=ANA)
    with pytest.raises(InvalidValueError):
        lead.spend(**wrong)  # type: ignore[arg-type]

    assert [] == bodies(relay, Kind.RUN_SPENT)
