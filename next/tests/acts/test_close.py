"""Closing a run: its report and its outcome, and what becomes of what it offered."""

from pathlib import Path

import pytest

from batonpass import Claim, Handoff, Run, RunState, State, WorkItem
from batonpass.errors import FencedError
from batonpass.testing import Faults, a_relay, a_run, an_attempt, observe


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def die() -> None:
    raise Killed


def fail_inside(root: Run, child: Handoff) -> None:
    with root, child:
        raise ValueError("no totals")


@pytest.mark.parity("report-travels-with-the-close")
def test_a_report_travels_with_the_close() -> None:
    """Result, value, completed work and open questions are in the receipt that ends the attempt; there is no other."""
    with a_relay() as relay:
        run = an_attempt(relay)
        run.report(
            "12 totals rounded",
            value={"totals": 12},
            completed=["totals", WorkItem("tests", verified_by="ci")],
            open_questions=["negative totals?"],
            claims=[Claim("rounding", key="mode", value="half-even")],
        )
        before = observe(relay).kinds()
        run.close()
        result = relay.handoff(run.handoff or "").result()
        seen = observe(relay)

    assert [*before, "handoff.completed"] == seen.kinds()
    assert "12 totals rounded" == seen.last("handoff.completed").value("report")["result"]
    assert result.report is not None
    assert {"totals": 12} == result.report.value
    assert ["totals", "tests"] == [item.text for item in result.report.completed]
    assert ["negative totals?"] == [question.text for question in result.report.open_questions]
    assert (State.COMPLETED, None) == (result.state, result.error)


def test_what_a_child_did_not_say_is_not_there() -> None:
    """Nothing is filled in: a run that reported nothing has no report."""
    with a_relay() as relay:
        run = an_attempt(relay)
        run.close()

        assert relay.handoff(run.handoff or "").result().report is None


@pytest.mark.parity("run-ends-with-its-outcome")
def test_leaving_with_by_an_error_closes_as_failed() -> None:
    """The run ends with the error in its words, and the error goes on to the caller."""
    with a_relay() as relay:
        root = a_run(relay)
        child = root.hand_off("editor", "Round")
        with pytest.raises(ValueError, match="no totals"):
            fail_inside(root, child)
        seen = observe(relay)
        result = child.result()

    assert [RunState.FAILED, RunState.FAILED] == list(seen.runs.values())
    assert "ValueError('no totals')" == seen.last("run.closed").text("error")
    assert (State.FAILED, "ValueError('no totals')") == (result.state, result.error)


def test_leaving_with_closes_as_completed() -> None:
    """What ends well is completed, which is provisional."""
    with a_relay() as relay:
        with a_run(relay) as root, root.hand_off("editor", "Round"):
            pass

        assert {RunState.COMPLETED} == set(observe(relay).runs.values())


def test_a_closed_run_takes_nothing_more() -> None:
    """It has ended: it is refused as fenced, whatever it tries."""
    with a_relay() as relay:
        root = a_run(relay)
        root.close()
        for act in (root.close, lambda: root.hand_off("editor", "x"), lambda: root.call(str, "x")):
            with pytest.raises(FencedError):
                act()

        assert ["run.started", "run.closed"] == observe(relay).kinds()


def test_what_a_run_offered_and_nobody_ended_is_withdrawn() -> None:
    """An offer and an attempt at work are cancelled with their parent; what is settled stays."""
    with a_relay() as relay:
        root = a_run(relay)
        offered = root.hand_off("a", "Offered")
        running = root.hand_off("b", "Running", accept=True)
        done = root.hand_off("c", "Done", accept=True)
        done.close()
        root.close()
        with pytest.raises(FencedError):
            running.call(str, "x")
        seen = observe(relay)

    assert (State.CANCELLED, State.CANCELLED, State.COMPLETED) == tuple(
        seen.handoffs[handoff] for handoff in (offered.id, running.handoff or "", done.handoff or "")
    )
    assert RunState.CANCELLED == seen.runs[running.id]


def test_an_attempt_that_failed_withdraws_nothing() -> None:
    """Its next attempt finds what it offered: the same offer is the same handoff."""
    with a_relay() as relay:
        handoff = a_run(relay).hand_off("editor", "Round")
        first = handoff.accept()
        child = first.hand_off("tester", "Test")
        first.close(ValueError("flaky"))
        assert State.OFFERED == child.state()

        second = handoff.retry(by="user:ana").accept()
        assert child.id == second.hand_off("tester", "Test").id


@pytest.mark.parity("close-before-withdrawals")
def test_a_process_that_lost_its_run_withdraws_nothing(tmp_path: Path) -> None:
    """Its own close comes first, and is refused; what the run offered stays as it is."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        root = a_run(old)
        offered = root.hand_off("editor", "Round")
        again = new.resume(root.id)
        with pytest.raises(FencedError):
            root.close()
        assert State.OFFERED == offered.state()
        again.close()
        seen = observe(new)

    assert State.CANCELLED == seen.handoffs[offered.id]
    withdrawn = seen.last("handoff.cancelled").body
    assert (root.id, 1) == (withdrawn["holder"], withdrawn["holder_epoch"])


@pytest.mark.parametrize("is_keyed", [True, False], ids=["the same request again", "closed again"])
def test_a_close_that_died_before_its_withdrawals_is_made_up_for(tmp_path: Path, *, is_keyed: bool) -> None:
    """The run has ended, and what it offered is withdrawn when it is closed again, in any process."""
    faults = Faults()
    with a_relay(tmp_path / "l.db", faults=faults) as relay:
        root = a_run(relay)
        offered = root.hand_off("editor", "Round")
        faults.at(faults.commits + 2, "before", die)
        with pytest.raises(Killed):
            root.close(key="close")
    with a_relay(tmp_path / "l.db") as relay:
        assert State.OFFERED == relay.handoff(offered.id).state()
        relay.run(root.id).close(key="close" if is_keyed else None)
        seen = observe(relay)

    assert State.CANCELLED == seen.handoffs[offered.id]
    assert 1 == seen.counts()["run.closed"]


def test_a_withdrawal_reaches_what_was_handed_on() -> None:
    """A closed root leaves nobody at work below it: children of its children are cancelled as well."""
    with a_relay() as relay:
        lead = a_run(relay)
        middle = lead.hand_off("a", "work", accept=True)
        leaf = middle.hand_off("b", "work", accept=True)
        lead.close()
        states = dict(observe(relay).handoffs)

        with pytest.raises(FencedError):
            leaf.call(print, "late")

    assert {middle.handoff: State.CANCELLED, leaf.handoff: State.CANCELLED} == states


def test_looking_at_an_ended_root_ends_nothing_that_was_retried() -> None:
    """A handoff that was retried after its root had ended goes on, whoever opens and leaves that root."""
    with a_relay() as relay:
        lead = a_run(relay)
        child = lead.hand_off("a", "work")
        with pytest.raises(ValueError, match="no totals"), child:
            raise ValueError("no totals")
        lead.close()
        attempt = child.retry(by="user:ana").accept()

        with relay.run(lead.id):
            pass

        attempt.report("done")
        attempt.close()
        assert State.COMPLETED == child.state()
