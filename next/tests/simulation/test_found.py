"""Faults that the simulation found, each where no schedule is needed to show it."""

from pathlib import Path
from typing import Literal

import pytest

from batonpass import Decision
from batonpass.errors import BatonpassError, CallInDoubtError, OutcomeUnknownError
from batonpass.testing import Faults, a_relay, a_run, observe


class Tool:
    """A tool that counts its calls, and lets the commit of its outcome be cut short."""

    def __init__(self, faults: Faults, when: Literal["before", "after"]) -> None:
        self.calls = 0
        self.__name__ = "send"
        self._faults = faults
        self._when = when

    def __call__(self) -> int:
        """Send, and return the number of the call."""
        self.calls += 1
        self._faults.fail(self._when)
        return self.calls


def test_a_call_whose_outcome_was_recorded_unheard_is_replayed(tmp_path: Path) -> None:
    """The agent is told that the outcome is unknown and asks again: it is given the result, and nothing is sent."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        run = a_run(relay, may=["call:send"])
        send = Tool(faults, "after")
        with pytest.raises(OutcomeUnknownError):
            run.call(send)

        assert (1, 1) == (run.call(send), send.calls)


def test_a_call_whose_outcome_was_not_recorded_is_in_doubt_for_its_own_run(tmp_path: Path) -> None:
    """The agent asks again for a call that was made: it is refused until it is decided."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        run = a_run(relay, may=["call:send"])
        send = Tool(faults, "before")
        with pytest.raises(BatonpassError):
            run.call(send)
        with pytest.raises(CallInDoubtError):
            run.call(send)

        assert 1 == send.calls


def test_items_of_a_start_are_handed_on_once_after_a_resume(tmp_path: Path) -> None:
    """A root that another process has opened from its receipts hands on what its first one would have."""
    with a_relay(tmp_path / "ledger.db") as first, a_relay(tmp_path / "ledger.db") as second:
        run = first.start("Round totals", by="user:ana", items=[Decision("half-even")])
        again = second.resume(run.id)
        child = again.hand_off("editor", "Fix rounding").accept()

        assert ((Decision("half-even"),), (Decision("half-even"),)) == (again.baton.items, child.baton.items)


def test_an_acceptance_of_an_earlier_offer_is_answered_alike_again(tmp_path: Path) -> None:
    """Offered first and accepted by a second request: that one repeated has the same run, and writes nothing."""
    with a_relay(tmp_path / "ledger.db") as relay:
        run = a_run(relay)
        run.hand_off("editor", "Fix rounding")
        attempts = [run.hand_off("editor", "Fix rounding", accept=True, key="k").id for _ in range(2)]

        assert (1, 1) == (len(set(attempts)), observe(relay).counts()["handoff.accepted"])
