"""Seats of agents: what is offered once, taken, dropped, and ended once."""

import pytest

from batonpass import Relay
from batonpass.adapters.frameworks.agent_seat import AgentSeat, SeatEnd, cause_of, refusal_of, take_offer
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work
from batonpass.errors import HandoffError, InvalidValueError, NotFoundError, PolicyFileError, PolicyRefusedError
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State


def _lead(relay: Relay) -> AgentSeat:
    ledger = FrameworkLedger(by="user:ana", relay=relay)
    return AgentSeat("lead", begin_work(ledger, "lead", "Fix it"), SeatEnd.RUN)


def _state(seat: AgentSeat) -> State:
    assert seat.work.handoff is not None
    return seat.work.handoff.state()


def test_a_task_is_one_handoff_until_somebody_took_it(relay: Relay) -> None:
    """The same words again find the same handoff; once it was taken, they are another one."""
    lead = _lead(relay)
    first, same = (lead.offer("editor", "Edit it", SeatEnd.TOOL) for _ in range(2))
    same.take("Edit it")
    another = lead.offer("editor", "Edit it", SeatEnd.TOOL)

    assert first.work.handoff is not None
    assert same.work.handoff is not None
    assert another.work.handoff is not None
    assert first.work.handoff.id == same.work.handoff.id != another.work.handoff.id


def test_work_ends_once(relay: Relay) -> None:
    """What was closed is neither closed again nor failed."""
    lead = _lead(relay)
    child = lead.offer("editor", "Edit it", SeatEnd.TOOL)
    child.work.open()
    child.close("done")
    child.close("again")
    child.abort(RuntimeError("too late"))

    assert State.COMPLETED is _state(child)


def test_work_that_fails_does_so_by_our_own_error(relay: Relay) -> None:
    """A framework wraps what others raise: the error behind it is what counts."""
    lead = _lead(relay)
    child = lead.offer("editor", "Edit it", SeatEnd.AGENT)
    child.work.open()
    child.abort(RuntimeError("in a plugin"))

    assert State.FAILED is _state(child)


def test_of_several_transfers_one_is_taken(relay: Relay) -> None:
    """The others of the same sender are dropped; a task that was given beside them is not."""
    lead = _lead(relay)
    offered = [
        lead.offer("editor", "Edit it", SeatEnd.RUN),
        lead.offer("checker", "Check it", SeatEnd.RUN),
        lead.offer("tester", "Test it", SeatEnd.TASK),
    ]
    editor, checker, tester = offered

    assert (None, []) == take_offer(offered, "nobody")
    assert (editor, [checker]) == take_offer(offered, "editor")
    assert (tester, []) == take_offer(offered, "tester")
    assert [] == offered


def test_a_refusal_is_found_behind_other_errors() -> None:
    """However often it was wrapped; an error that is none of ours stays what it is."""
    refused = PolicyRefusedError("it may not")
    wrapped = RuntimeError("in a plugin")
    wrapped.__cause__ = LookupError("in a node")
    wrapped.__cause__.__cause__ = refused
    other = ValueError("x")

    assert (refused, refused) == (cause_of(wrapped), refusal_of(wrapped))
    assert (other, None) == (cause_of(other), refusal_of(other))
    assert refusal_of(NotFoundError("agent", "x")) is None


class TestFaults:
    """Faults of ours: an observed program hears of none."""

    @staticmethod
    def _break() -> None:
        raise ZeroDivisionError

    def test_observed_it_goes_on(self, relay: Relay) -> None:
        """With one warning."""
        ledger = FrameworkLedger(by="user:ana", relay=relay)

        with pytest.warns(UserWarning, match="not recorded: ZeroDivisionError") as warned:
            assert [None, None] == [ledger.attempt(self._break) for _ in range(2)]

        assert 1 == len(warned)
        assert 7 == ledger.attempt(lambda: 7)

    @pytest.mark.parametrize(
        ("options", "enforced"),
        [({"mode": Mode.ENFORCED}, None), ({"grants": {"lead": ["read:**"]}}, None), ({}, True)],
        ids=["by its mode", "by a grant", "by its run"],
    )
    def test_enforced_it_is_raised(self, relay: Relay, options: dict[str, object], enforced: bool | None) -> None:  # noqa: FBT001 - a row
        """Nothing goes on that nobody judged."""
        ledger = FrameworkLedger(by="user:ana", relay=relay, **options)  # type: ignore[arg-type] # rows of a table

        with pytest.raises(ZeroDivisionError):
            ledger.attempt(self._break, enforced=enforced)

    @pytest.mark.parametrize("error", [HandoffError("no"), PolicyFileError("batonpass.toml", 1, "rules", "odd")])
    def test_refusals_are_raised(self, relay: Relay, error: Exception) -> None:
        """They are answers, and a policy that cannot be read stops everybody."""

        def refuse() -> None:
            raise error

        with pytest.raises(type(error)):
            FrameworkLedger(by="user:ana", relay=relay).attempt(refuse)


def test_the_user_of_a_framework_is_the_principal(relay: Relay) -> None:
    """Where the program names nobody; a name that is none is said, and not bent into another."""
    ledger = FrameworkLedger(relay=relay)
    work = begin_work(ledger, "lead", "Fix it", user="ana@example.org")
    work.open()

    with relay.store.view() as view:
        (root,) = view.find_runs(roots=True)
    assert "user:ana@example.org" == root.principal
    with pytest.raises(InvalidValueError):
        begin_work(ledger, "lead", "Fix it", user="two words")


def test_what_is_left_uncovered_says_why(relay: Relay) -> None:
    """Once, and as a flag for each close-out."""
    ledger = FrameworkLedger(by="user:ana", relay=relay)

    with pytest.warns(UserWarning, match="inner works without our plugin: its calls are neither") as warned:
        ledger.leave_uncovered(["inner", "inner"], "works without our plugin")

    assert 1 == len(warned)
    assert ["uncovered.inner"] == list(ledger.uncovered)
