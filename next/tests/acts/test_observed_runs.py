"""Runs that are observed go on whatever happens to the record; runs that are enforced do not."""

from typing import TYPE_CHECKING, Any

import pytest

from batonpass import Decision, RunState, State, tool
from batonpass.errors import BatonpassError, CallInDoubtError, StoreError
from batonpass.testing import Faults, a_relay, a_run, an_attempt, observe

if TYPE_CHECKING:
    from collections.abc import Callable

MADE: list[str] = []


@tool
def send(to: str) -> str:
    """Send a mail."""
    MADE.append(to)
    return f"sent to {to}"


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    MADE.clear()


@pytest.mark.parity("gaps-are-recorded")
def test_what_could_not_be_recorded_is_said_with_the_next_write() -> None:
    """In one receipt, before what could be written: how many acts are missing, and which."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay)
        faults.fail(times=2)
        run.call(send, "ana")
        run.record(Decision("half-even"))
        assert [] == observe(relay).gaps
        run.call(send, "bob")
        seen = observe(relay)

    assert ["ana", "bob"] == MADE
    assert ["run.recorded.gap", "tool.requested", "tool.completed"] == seen.kinds()[-3:]
    assert 2 == seen.last("run.recorded.gap").body["count"]
    assert ["editor: call of send", "editor: record"] == [gap.partition(": the ")[0] for gap in seen.gaps]
    assert all("disk is full" in gap for gap in seen.gaps)


@pytest.mark.parity("gaps-are-recorded")
def test_an_outcome_that_could_not_be_recorded_is_a_gap() -> None:
    """The call was made, and its result reaches its caller; the record has it in doubt."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay)
        faults.at(faults.commits + 2, "before", _raise)
        assert "sent to ana" == run.call(send, "ana")
        run.close()
        seen = observe(relay)

    assert ["tool.requested", "run.recorded.gap", "handoff.completed"] == seen.kinds()[-3:]
    assert seen.gaps[0].startswith("editor: outcome of send")
    assert ["send"] == [call.tool for call in seen.in_doubt]


def _raise() -> None:
    raise StoreError("the ledger cannot be written: the disk is full")


@pytest.mark.parity("observed-runs-never-block")
@pytest.mark.parametrize("broken", range(1, 9))
@pytest.mark.parametrize("times", [1, 99], ids=["once", "from then on"])
def test_an_observed_program_goes_on_at_every_commit_that_fails(broken: int, times: int) -> None:
    """Whichever commit fails after the start, everything is done as without the record, and nothing is raised."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay)
        for number in range(broken, broken + times):
            faults.at(1 + number, "before", _raise)
        root.record(Decision("half-even"))
        with root.hand_off("editor", "Round") as child:
            child.call(send, "ana")
            child.report("done")
        with root.hand_off("tester", "Test", accept=True) as tester:
            tester.call(send, "bob")
        root.call(send, "eve")
        root.close()
        faults.work()
        relay.verify()

    assert ["ana", "bob", "eve"] == MADE


@pytest.mark.parity("enforced-runs-fail-closed")
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_enforced_call_that_cannot_be_recorded_is_not_made(when: Any) -> None:  # noqa: ANN401 - of `Faults.fail`
    """Its caller is told what the ledger says, and may go on when it works again."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay, may=["call:**"])
        faults.fail(when)
        with pytest.raises(StoreError):
            run.call(send, "ana")
        assert [] == MADE
        assert "sent to bob" == run.call(send, "bob")


@pytest.mark.parity("enforced-runs-fail-closed")
def test_an_enforced_outcome_that_cannot_be_recorded_does_not_reach_the_agent() -> None:
    """The tool has run; its result is not given to an agent of which nothing is known."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay, may=["call:**"])
        faults.at(faults.commits + 2, "before", _raise)
        with pytest.raises(StoreError):
            run.call(send, "ana")
        with pytest.raises(CallInDoubtError):
            run.call(send, "ana")

        assert ["ana"] == MADE
        assert ["send"] == [call.tool for call in observe(relay).in_doubt]


@pytest.mark.parametrize("act", ["hand_off", "accept", "record", "close"])
def test_an_enforced_act_that_cannot_be_written_is_refused(act: str) -> None:
    """Nothing goes on unrecorded in its name."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay, may=["call:**"])
        handoff = root.hand_off("editor", "Round", may=["call:**"])
        acts: dict[str, Callable[[], object]] = {
            "hand_off": lambda: root.hand_off("tester", "Test", may=["call:**"]),
            "accept": handoff.accept,
            "record": lambda: root.record(Decision("x")),
            "close": root.close,
        }
        faults.fail()
        with pytest.raises(StoreError):
            acts[act]()
        seen = observe(relay)

    assert [State.OFFERED] == list(seen.handoffs.values())
    assert [RunState.OPEN] == list(seen.runs.values())


@pytest.mark.parity("enforced-runs-fail-closed")
@pytest.mark.parametrize("accept", [False, True], ids=["offered", "offered and accepted"])
def test_an_observed_run_hands_on_no_grant_that_cannot_be_written(accept: Any) -> None:  # noqa: ANN401 - a literal
    """A child that is to be enforced is not replaced by one that is not even recorded."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay)
        faults.fail()
        with pytest.raises(StoreError):
            root.hand_off("editor", "Round", may=["call:**"], accept=accept)


def test_gaps_name_the_agent_and_what_it_did() -> None:
    """An offer, an acceptance, the calls of a child that has no place in the record, a close."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay)
        offered = root.hand_off("editor", "Round")
        faults.fail(times=9)
        offered.accept().call(send, "ana")
        root.hand_off("tester", "Test").accept().close()
        faults.work()
        root.record(Decision("x"))

        assert [
            "lead: acceptance by editor",
            "editor: call of send",
            "lead: handoff to tester",
            "lead: end of tester",
        ] == [gap.partition(": the ledger")[0].partition(": run_")[0] for gap in observe(relay).gaps]


def test_a_start_that_cannot_be_written_is_refused() -> None:
    """Without a root there is nothing that could say what is missing."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        faults.fail()
        with pytest.raises(BatonpassError, match="disk is full"):
            a_run(relay)


def test_an_end_that_could_not_be_written_is_written_with_the_end_of_its_parent() -> None:
    """A child that reported while the disk was full has completed, with its report, when its parent ends."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        lead = a_run(relay)
        child = lead.hand_off("a", "work", accept=True)
        child.report("all done")
        faults.fail()
        child.close()
        lead.close()
        result = relay.handoff(child.handoff or "").result()

        assert (State.COMPLETED, "all done") == (result.state, result.report.result if result.report else None)
        assert 1 == len(observe(relay).gaps)


def test_items_that_could_not_be_recorded_are_told_to_children() -> None:
    """Also after an answer that nobody heard, when the run reads the ledger again."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        lead = a_run(relay)
        faults.fail("before")
        lead.record(Decision("half-even"))
        faults.fail("after")
        lead.record(Decision("yen"))

        assert {"half-even", "yen"} <= {item.text for item in lead.hand_off("a", "work", accept=True).baton.items}


def test_a_result_that_is_too_large_is_not_kept() -> None:
    """The call was made and has its outcome; its caller has the result, and a later attempt would be asked about."""
    with a_relay() as relay:
        run = a_run(relay)

        assert 20_000_000 == len(run.call(lambda: "x" * 20_000_000))
        assert ["run.started", "tool.requested", "tool.completed"] == observe(relay).kinds()
