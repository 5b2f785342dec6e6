"""What a run is told that it may do: counted now, never more than is enforced, and without secrets."""

from datetime import timedelta
from decimal import Decimal
from typing import Final

import pytest
from msgspec.structs import replace

from batonpass import Brief, Grant
from batonpass.aio import AsyncRelay
from batonpass.errors import ConstraintViolatedError, GrantDeniedError
from batonpass.handoff.grants.effective_grant import Holder, read_grant, read_grant_of
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.card import Card
from batonpass.model.grants.effective_grant import EffectiveGrant, GrantStanding
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from tests.unit.agents.house import run_async
from tests.unit.handoff.places import ANA, Disk, Places, at_once

HOUR: Final = timedelta(hours=1)


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


def permits(grant: EffectiveGrant) -> list[str]:
    """Return what may be used."""
    return [permit.text for permit in grant.may or ()]


def left(grant: EffectiveGrant) -> dict[str, int | str]:
    """Return what is left of each limit."""
    return {one.unit: one.left for one in grant.limits}


class TestWithoutAGrant:
    """Nothing is enumerated, and it is said what holds the run instead."""

    def test_an_observed_run_is_blocked_by_nothing(self, relay: Relay) -> None:
        """It has no permits, which is not the same as an empty list of them."""
        grant = relay.start("Fix it", by=ANA).grant()

        assert (Mode.OBSERVED, True, None, None, (), False) == (
            grant.mode,
            grant.is_observed,
            grant.may,
            grant.may_delegate,
            grant.chain,
            grant.is_bound,
        )

    def test_an_enforced_run_without_a_grant_says_so(self, relay: Relay) -> None:
        """It is held to constraints and the policy, and not to a list."""
        grant = relay.start("Fix it", by=ANA, mode=Mode.ENFORCED).grant()

        assert (False, None, False) == (grant.is_observed, grant.may, grant.is_bound)

    def test_a_policy_that_is_enforced_stops_observed_runs_too(self, places: Places) -> None:
        """Who is told that nothing is blocked must not be refused by a rule a moment later."""
        relay = places.relay(policy=Policy(enforce=True))
        grant = relay.start("Fix it", by=ANA, mode=Mode.OBSERVED).grant()

        assert (True, True) == (grant.is_observed, grant.policy_stops)


class TestLeft:
    """Limits are counted at each question, whoever uses them up."""

    def test_what_is_left_is_what_can_still_be_done(self, relay: Relay, disk: Disk) -> None:
        """Each call takes one; at nothing left, the next is refused, and not before."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["write:**"], limits="at most 3 calls"))
        seen = []
        for number in range(3):
            seen.append(left(lead.grant())["calls"])
            lead.call(disk.write, f"{number}.md", "")

        assert ([3, 2, 1], {"calls": 0}) == (seen, left(lead.grant()))
        with pytest.raises(ConstraintViolatedError):
            lead.call(disk.write, "more.md", "")

    def test_others_use_a_shared_limit_up(self, relay: Relay, disk: Disk) -> None:
        """A sibling's call is missing here; the read value says under whose grant it is shared."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 5 calls"))
        one, other = (lead.hand_off(name, "Edit", may=["write:**"]).accept() for name in ("one", "other"))
        other.call(disk.write, "a.md", "")
        (limit,) = one.grant().limits

        assert (5, 1, 4, "lead", False) == (limit.most, limit.used, limit.left, limit.shared_with, limit.budget)

    def test_the_narrowest_of_several_limits_is_told(self, relay: Relay, disk: Disk) -> None:
        """A child's own limit, its parent's and its budget: that which stops it first, and whose it is."""
        lead = relay.start(
            "Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 9 calls, 100 tokens")
        )
        budget = Budget(calls=2)
        editor = lead.hand_off(
            "editor", "Edit", grant=Grant(may=["write:**"], limits="at most 4 calls"), brief=Brief(budget=budget)
        ).accept()
        editor.call(disk.write, "a.md", "")

        assert [("calls", 1, "editor", True), ("tokens", 100, "lead", False)] == [
            (one.unit, one.left, one.shared_with, one.budget) for one in editor.grant().limits
        ]

    def test_a_permit_has_limits_of_its_own(self, relay: Relay, disk: Disk) -> None:
        """They are told beside it, and counted alone."""
        lead = relay.start("Fix it", by=ANA, may=["write:docs/**; at most 2 calls", "write:src/**"])
        lead.call(disk.write, "docs/a.md", "")
        lead.call(disk.write, "src/a.py", "")

        assert [("write:docs/**; at most 2 calls", [1]), ("write:src/**", [])] == [
            (permit.text, [one.left for one in permit.left]) for permit in lead.grant().may or ()
        ]

    def test_a_permit_further_up_that_is_nearly_used_up_counts(self, relay: Relay, disk: Disk) -> None:
        """Two children share what their lead may delegate three times: what one used the other no longer has."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**; at most 3 calls"]))
        one, other = (lead.hand_off(name, "Edit", may=["write:docs/**"]).accept() for name in ("one", "other"))
        for name in ("a", "b"):
            other.call(disk.write, f"docs/{name}.md", "")
        (permit,) = one.grant().may or ()

        assert [("calls", 1)] == [(limit.unit, limit.left) for limit in permit.left]
        one.call(disk.write, "docs/c.md", "")
        with pytest.raises(ConstraintViolatedError):
            one.call(disk.write, "docs/d.md", "")

    def test_only_permits_that_cover_it_count_further_up(self, relay: Relay, disk: Disk) -> None:
        """What a lead may delegate elsewhere without a limit is nothing that is left here."""
        may = ["write:docs/**; at most 3 calls", "write:src/**"]
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=may))
        one, other = (lead.hand_off(name, "Edit", may=["write:docs/**"]).accept() for name in ("one", "other"))
        other.call(disk.write, "docs/a.md", "")
        (permit,) = one.grant().may or ()

        assert [("calls", 2)] == [(limit.unit, limit.left) for limit in permit.left]

    def test_money_is_counted_in_decimals_and_time_by_the_clock(self, places: Places) -> None:
        """As people write it: 2.5 spend, and so many seconds since it was granted."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        buy = tool("buy", cost=lambda _: Decimal("0.75"))(lambda: None)
        lead = relay.start("Buy", by=ANA, grant=Grant(may=["call:buy"], limits="at most 2.5 spend, 60 seconds"))
        lead.call(buy)
        clock.tick(timedelta(seconds=20))

        assert {"spend": "1.75", "seconds": 40} == left(lead.grant())

    def test_two_processes_count_together(self, places: Places, disk: Disk) -> None:
        """What another process used is seen here."""
        relay = places.relay()
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 8 calls"))
        runs = [lead.hand_off(name, "Edit", may=["write:**"]).accept() for name in ("one", "other")]
        at_once(*(lambda run=run: run.call(disk.write, f"{run.agent}.md", "") for run in runs))

        assert [{"calls": 6}] * 2 == [left(run.grant()) for run in runs]


class TestChain:
    """Who granted what, from the principal down, and what every hop above leaves of it."""

    def test_the_chain_goes_from_the_principal_down(self, relay: Relay) -> None:
        """Who by whom, with what each may use and pass on."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        editor = lead.hand_off(
            "editor", "Edit", grant=Grant(may=["write:src/**"], may_delegate=["write:src/a/**"])
        ).accept()
        typist = editor.hand_off("typist", "Type", may=["write:src/a/b.py"]).accept()
        grant = typist.grant()

        assert [
            (ANA, "lead", (), ("write:**",)),
            ("lead", "editor", ("write:src/**",), ("write:src/a/**",)),
            ("editor", "typist", ("write:src/a/b.py",), ()),
        ] == [(step.by, step.to, step.may, step.may_delegate) for step in grant.chain]
        assert (["write:src/a/b.py"], ()) == (permits(grant), grant.may_delegate)

    def test_a_grant_that_begins_below_is_given_in_the_principal_s_name(self, relay: Relay) -> None:
        """An observed lead gives what it likes, on behalf of whom it works for."""
        editor = relay.start("Fix it", by=ANA).hand_off("editor", "Edit", may=["write:src/**"]).accept()

        assert [(f"lead for {ANA}", "editor")] == [(step.by, step.to) for step in editor.grant().chain]

    def test_depth_and_end_are_those_of_the_whole_chain(self, places: Places) -> None:
        """The earliest end, and the fewest hops that may still follow."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start(
            "Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], until=clock.now() + HOUR, max_depth=2)
        )
        editor = lead.hand_off("editor", "Edit", may=["write:**"]).accept()

        assert (2, 1, clock.now() + HOUR) == (lead.grant().depth_left, editor.grant().depth_left, editor.grant().until)

    def test_a_grant_that_was_widened_is_told_as_it_holds(self, relay: Relay) -> None:
        """What a hop gave that it did not have has no effect, so nobody is told that they may."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]))
        editor = lead.hand_off("editor", "Edit", may=["write:src/**"]).accept()
        bounds = editor._holding.bounds
        above, own = bounds.chain
        stolen = replace(own, said=replace(own.said, may=read_scope(["write:**", "pay:**"])))
        holder = Holder(
            agent=editor.agent,
            principal=editor.principal,
            mode=Mode.ENFORCED,
            bounds=replace(bounds, chain=(above, stolen)),
        )
        with relay.store.view() as view:
            grant = read_grant(view, holder, at=editor.grant().at)

        assert ["write:src/**"] == permits(grant)

    def test_a_card_cuts_what_its_agent_is_told(self, relay: Relay, disk: Disk) -> None:
        """The ceiling of a card that came later holds each call, and is told."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        editor = lead.hand_off("editor", "Edit", may=["write:**"]).accept()
        relay.introduce(Card(agent=AgentId("editor"), ceiling=("write:docs/**",)))

        assert ["write:docs/**"] == permits(editor.grant())
        with pytest.raises(GrantDeniedError):
            editor.call(disk.write, "src/a.py", "")

    def test_a_password_in_a_permit_is_not_told(self, relay: Relay) -> None:
        """Whoever works is often a model, and what it is told goes to its provider."""
        lead = relay.start("Ask", by=ANA, may=["call:https://bot:hunter2-hunter2@shop.example/**"])
        grant = lead.grant()

        assert "hunter2" not in repr(grant)
        assert (1, 1) == (len(permits(grant)), len(grant.chain[0].may))


class TestStanding:
    """A grant that no longer holds gives nothing."""

    def test_a_grant_that_has_ended_gives_nothing(self, places: Places) -> None:
        """The permits are gone, and it is said why."""
        clock = FrozenClock()
        lead = places.relay(clock=clock).start(
            "Fix it", by=ANA, grant=Grant(may=["write:**"], until=clock.now() + HOUR)
        )
        assert GrantStanding.IN_FORCE == lead.grant().standing
        clock.tick(HOUR)

        assert (GrantStanding.ENDED, (), ()) == (lead.grant().standing, lead.grant().may, lead.grant().may_delegate)

    def test_a_permit_that_has_ended_is_left_out(self, places: Places) -> None:
        """Others of the same grant go on."""
        clock = FrozenClock()
        until = f"{clock.now() + HOUR:%Y-%m-%dT%H:%M:%SZ}"
        lead = places.relay(clock=clock).start("Fix it", by=ANA, may=[f"write:docs/**; until {until}", "write:src/**"])
        clock.tick(HOUR)

        assert ["write:src/**"] == permits(lead.grant())

    def test_what_is_revoked_above_is_revoked_here(self, relay: Relay) -> None:
        """The step at which it broke is marked, and nothing may be done."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        editor = lead.hand_off("editor", "Edit", may=["write:**"]).accept()
        relay.revoke_grant(lead.id, by=ANA, reason="enough")
        grant = editor.grant()

        assert (GrantStanding.REVOKED, ()) == (grant.standing, grant.may)
        assert [GrantStanding.REVOKED, GrantStanding.IN_FORCE] == [step.standing for step in grant.chain]

    def test_a_grant_that_is_tried_out_blocks_nothing(self, relay: Relay, disk: Disk) -> None:
        """It is told whole, together with that it stops nobody."""
        lead = relay.start("Fix it", by=ANA, may=["write:docs/**"], mode=Mode.OBSERVED)
        lead.call(disk.write, "src/a.py", "")

        assert (True, ["write:docs/**"]) == (lead.grant().is_observed, permits(lead.grant()))


def test_an_async_run_is_told_the_same() -> None:
    """To be awaited: it asks the ledger."""

    async def main() -> EffectiveGrant:
        async with (
            AsyncRelay.open("memory:") as relay,
            relay.start("Fix it", by=ANA, grant=Grant(may=["write:**"], limits="at most 3 calls")) as lead,
        ):
            return await lead.grant()

    grant = run_async(main())
    assert (["write:**"], {"calls": 3}) == (permits(grant), left(grant))


def test_from_receipts_alone_it_is_the_same(relay: Relay, disk: Disk) -> None:
    """Whoever only reads the ledger says what the run itself is told; before anybody took it, what they would be."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 5 calls"))
    handoff = lead.hand_off("editor", "Edit", may=["write:src/**"], brief=Brief(budget=Budget(calls=3)))
    with relay.store.view() as view:
        before = read_grant_of(view, view.get_handoff(handoff.id), lead.grant().at)
    editor = handoff.accept()
    editor.call(disk.write, "src/a.py", "")
    now = editor.grant()
    with relay.store.view() as view:
        after = read_grant_of(view, view.get_handoff(handoff.id), now.at)

    assert (["write:src/**"], {"calls": 3}) == (permits(before), left(before))
    assert now == after
