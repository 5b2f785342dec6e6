"""Who comes in: by a valid token and nothing else, and whoever guesses or hurries is stopped."""

from datetime import timedelta

import pytest

from batonpass.clock import SystemClock
from batonpass.errors import LockedOutError, TooManyRequestsError, UnknownTokenError
from batonpass.model.base.kinds import AccessRole
from batonpass.relay import Relay
from batonpass.server.access import AccessLimits, Doorkeeper
from batonpass.testing import FrozenClock
from tests.unit.server.conftest import ANA, BEN, DAY, House

LIMITS = AccessLimits(wrong_tokens=3, locked_out_for=60.0, burst=5, requests_per_second=1.0)


class Watch:
    """A clock for durations that stands still."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


def a_token(relay: Relay, lasts: timedelta = DAY) -> str:
    """Return the text of an auditor's token."""
    return relay.admin.add_token(ANA, AccessRole.AUDITOR, by=BEN, lasts=lasts).text


def test_a_valid_token_lets_its_principal_in(relay: Relay) -> None:
    """The token says who came in, and in which role; the scheme is written either way."""
    token = a_token(relay)
    keeper = Doorkeeper(relay.store, FrozenClock(), AccessLimits())

    assert (ANA, AccessRole.AUDITOR) == (
        keeper.let_in(f"bearer {token}", "here").principal,
        keeper.let_in(f"Bearer {token}", "here").role,
    )


def test_whatever_is_no_valid_token_is_told_the_same(relay: Relay) -> None:
    """Missing, malformed, unknown, wrong, expired and revoked tokens cannot be told apart from outside."""
    good, short = a_token(relay), a_token(relay, timedelta(microseconds=1))
    gone = a_token(relay)
    relay.admin.revoke_token(gone.partition(".")[0], by=BEN, reason="left")
    other = a_token(relay).partition(".")[2]
    given = [
        None,
        "",
        "Bearer",
        f"Basic {good}",
        f"Bearer {good[:-1]}",
        f"Bearer {good}x",
        f"Bearer {good.partition('.')[0]}",
        f"Bearer {good.partition('.')[0]}.{other}",
        f"Bearer token_01jd000000000000000000000.{other}",
        f"Bearer {short}",
        f"Bearer {gone}",
        f"Bearer {'x' * 10_000}",
    ]
    keeper = Doorkeeper(relay.store, SystemClock(), AccessLimits(wrong_tokens=1000))
    told = set()
    for authorization in given:
        with pytest.raises(UnknownTokenError) as refused:
            keeper.let_in(authorization, "here")
        told.add(str(refused.value))

    assert 1 == len(told)


def test_only_a_digest_is_kept(relay: Relay) -> None:
    """Neither the secret nor the token is anywhere in the ledger."""
    token, secret = a_token(relay), a_token(relay).partition(".")[2]
    with relay.store.view() as view:
        kept = b"".join(view.get_receipt(one.receipt).payload for one in view.find_remarks())

    assert (False, False) == (secret.encode() in kept, token.encode() in kept)


def test_whoever_guesses_is_locked_out_of_that_token_for_a_while(relay: Relay) -> None:
    """Not even the right secret lets that address in then; others, and other tokens, are not affected."""
    token, another, watch = a_token(relay), a_token(relay), Watch()
    keeper = Doorkeeper(relay.store, FrozenClock(), LIMITS, elapsed=watch)
    for _ in range(LIMITS.wrong_tokens):
        with pytest.raises(UnknownTokenError):
            keeper.let_in(f"Bearer {token[:-2]}xy", "there")
    with pytest.raises(LockedOutError) as locked:
        keeper.let_in(f"Bearer {token}", "there")
    keeper.let_in(f"Bearer {token}", "elsewhere")
    keeper.let_in(f"Bearer {another}", "there")
    watch.now = 61.0

    assert (61, ANA) == (locked.value.seconds, keeper.let_in(f"Bearer {token}", "there").principal)


def test_guesses_at_tokens_that_do_not_exist_count_together(relay: Relay) -> None:
    """Another id each time does not help."""
    keeper = Doorkeeper(relay.store, FrozenClock(), LIMITS, elapsed=Watch())
    for number in range(LIMITS.wrong_tokens):
        with pytest.raises(UnknownTokenError):
            keeper.let_in(f"Bearer token_{number}.guess", "there")

    with pytest.raises(LockedOutError):
        keeper.let_in("Bearer token_9.guess", "there")


def test_a_token_has_a_pace(relay: Relay) -> None:
    """A burst is let through, then as many a second as there may be."""
    token, watch = a_token(relay), Watch()
    keeper = Doorkeeper(relay.store, FrozenClock(), LIMITS, elapsed=watch)
    for _ in range(LIMITS.burst):
        keeper.let_in(f"Bearer {token}", "here")
    with pytest.raises(TooManyRequestsError):
        keeper.let_in(f"Bearer {token}", "here")
    watch.now = 1.0

    assert ANA == keeper.let_in(f"Bearer {token}", "here").principal


def test_a_token_whose_ceiling_was_erased_lets_nobody_in(house: House) -> None:
    """Otherwise erasing words would widen what somebody may do."""
    (agent,) = (one for one in house.relay.admin.tokens() if one.role is AccessRole.AGENT)
    with house.relay.store.view() as view:
        (content,) = (one for one in view.find_contents(list(view.find_content_ids())) if one.receipt == agent.receipt)
    house.relay.admin.erase([content.id], by=BEN, reason="asked")

    assert "access.unknown_token" == house.visitor("agent").get("/v1/ledger").code


def test_the_link_lets_in_once(house: House) -> None:
    """The code is exchanged for a token of an administrator; a second time, and a wrong code, get nothing."""
    code = house.plane.entrance.open(ANA)
    visitor = house.visitor()
    wrong = visitor.post("/v1/enter", {"code": f"{code}x"})
    first, second = visitor.post("/v1/enter", {"code": code}), visitor.post("/v1/enter", {"code": code})
    visitor.token = first.json["token"]

    assert (401, 201, 401, 200) == (wrong.status, first.status, second.status, visitor.get("/v1/tokens").status)


def test_a_link_that_is_too_old_lets_nobody_in(relay: Relay) -> None:
    """It is open for ten minutes."""
    from batonpass.server.entrance import OPEN_FOR, OneTimeEntrance  # noqa: PLC0415 - only here

    clock = FrozenClock()
    entrance = OneTimeEntrance(relay, clock)
    code = entrance.open(ANA)
    clock.tick(OPEN_FOR)

    with pytest.raises(UnknownTokenError):
        entrance.enter(code)
