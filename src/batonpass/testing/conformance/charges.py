"""Charges: a limit is counted together with the call that uses it, and is never exceeded."""

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import BudgetExhaustedError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, StreamId, new_call_id
from batonpass.model.bodies.body import ToolCompleted, ToolRequested
from batonpass.model.grants.charge import Charge, Charged, Unit, Within
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, all_receipts, at_once


def account_of(working: Working) -> StreamId:
    """Return the account of a run's tree."""
    return StreamId(working.run.root)


def request(scribe: Scribe, working: Working, *charges: Charge, within: tuple[Within, ...] = ()) -> None:
    """Record a call with charges, within limits."""
    body = ToolRequested(run=working.run.id, call=new_call_id(NOW), tool="pull", charges=charges)
    scribe.recording.record(working, body, within=within)


def one_call(working: Working, most: int) -> tuple[Charge, tuple[Within, ...]]:
    """Return the charge of one call, and a limit on calls."""
    account = account_of(working)
    charge = Charge(account=account, unit=Unit.CALLS, amount=1)
    return charge, (Within(account=account, unit=Unit.CALLS, most=most),)


def used(store: LedgerStore, account: StreamId | None = None) -> list[Charged]:
    """Return the charges so far."""
    with store.view() as view:
        return sorted(view.find_charged(None if account is None else [account]), key=lambda charged: charged.id)


class Charging(WithScribe):
    """How much of a limit is used by everybody who shares it."""

    def test_what_is_used_adds_up(self, store: LedgerStore, scribe: Scribe) -> None:
        """Requests and outcomes count, by unit and account; a reservation that was not needed is returned."""
        one = scribe.recording.start("one", agent=AgentId("lead"), by=ANA)
        other = scribe.recording.start("other", agent=AgentId("lead"), by=ANA)
        spend = Charge(account=account_of(one), unit=Unit.SPEND, amount=5)
        request(scribe, one, one_call(one, 9)[0], spend)
        request(scribe, one, one_call(one, 9)[0])
        request(scribe, other, one_call(other, 9)[0])
        back = Charge(account=account_of(one), unit=Unit.SPEND, amount=-2)
        scribe.recording.record(one, ToolCompleted(run=one.run.id, call=new_call_id(NOW), charges=(back,)))

        mine = [
            Charged(account=account_of(one), unit=Unit.CALLS, used=2),
            Charged(account=account_of(one), unit=Unit.SPEND, used=3),
        ]
        theirs = Charged(account=account_of(other), unit=Unit.CALLS, used=1)
        with store.view() as view:
            both = list(view.find_charged({account_of(one), account_of(other)}))
            assert ([], sorted([*mine, theirs], key=lambda charged: charged.id)) == (list(view.find_charged(())), both)
        assert (mine, [*mine, theirs]) == (used(store, account_of(one)), used(store))

    def test_a_limit_holds_exactly(self, store: LedgerStore, scribe: Scribe) -> None:
        """The last unit can be used; beyond it nothing is written and nothing is counted."""
        working = scribe.recording.start("one", agent=AgentId("lead"), by=ANA)
        charge, within = one_call(working, 2)
        request(scribe, working, charge, within=within)
        request(scribe, working, charge, within=within)
        before = len(all_receipts(store))
        with pytest.raises(BudgetExhaustedError) as refused:
            request(scribe, working, charge, within=within)

        assert (before, 2) == (len(all_receipts(store)), used(store)[0].used)
        assert (3, 2, "calls") == (refused.value.used, refused.value.most, refused.value.unit)
        request(scribe, working, within=(Within(account=account_of(working), unit=Unit.TOKENS, most=0),))

    def test_a_limit_is_asked_without_using_anything(self, store: LedgerStore, scribe: Scribe) -> None:
        """An amount that is known only after a call can be reserved before it."""
        working = scribe.recording.start("one", agent=AgentId("lead"), by=ANA)
        account = account_of(working)
        tokens = Charge(account=account, unit=Unit.TOKENS, amount=1_000)
        scribe.recording.record(working, ToolCompleted(run=working.run.id, call=new_call_id(NOW), charges=(tokens,)))
        request(scribe, working, within=(Within(account=account, unit=Unit.TOKENS, most=1_000),))
        with pytest.raises(BudgetExhaustedError):
            request(scribe, working, within=(Within(account=account, unit=Unit.TOKENS, most=999),))

        assert [1_000] == [charged.used for charged in used(store)]

    def test_of_those_who_race_for_the_last_units_each_gets_one_or_none(
        self, store: LedgerStore, scribe: Scribe
    ) -> None:
        """Runs of one tree that write at once, each into its own stream, together get exactly the limit."""
        lead = scribe.recording.start("all", agent=AgentId("lead"), by=ANA)
        charge, within = one_call(lead, 5)
        workers = [
            scribe.recording.accept(scribe.recording.offer(lead, AgentId("worker"), f"part {number}"))
            for number in range(8)
        ]
        outcomes: list[bool] = []

        def work(worker: Working) -> None:
            try:
                request(scribe, worker, charge, within=within)
            except BudgetExhaustedError:
                outcomes.append(False)
            else:
                outcomes.append(True)

        at_once(work, workers)

        assert ([False] * 3 + [True] * 5, 5) == (sorted(outcomes), used(store)[0].used)
        store.sequence()
        assert verify_ledger(store).receipts == len(all_receipts(store))
