"""Runners: whatever works on a handoff."""

import asyncio
import json
import math
from typing import Any

import pytest

from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.programs.runners import report_of
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Report
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONE_SURROGATE, Places, bodies


class Runner:
    """An object that works."""

    def __call__(self, run: LiveRun) -> str:
        """Return who worked."""
        return f"{run.agent} worked"


async def think(run: LiveRun) -> str:
    await asyncio.sleep(0)
    return f"{run.agent} thought"


@pytest.mark.parametrize(
    ("runner", "expected"),
    [(lambda _: "done", "done"), (Runner(), "worker worked"), (think, "worker thought"), (lambda _: 5, 5)],
    ids=["a function", "an object", "a coroutine function", "a value"],
)
def test_whatever_can_be_called_works(lead: LiveRun, runner: Any, expected: object) -> None:  # noqa: ANN401 - anything
    """What it returns is the result."""
    assert expected == lead.hand_off("worker", "one", run=runner).wait().value


def test_a_registered_runner_works_for_its_agent(relay: Relay, lead: LiveRun) -> None:
    """An offer to an agent that is known here needs nothing else; one to a stranger says so."""
    relay.register("worker", lambda run: run.task.upper())

    assert "SHOUT" == lead.hand_off("worker", "shout").wait().value
    with pytest.raises(InvalidValueError, match="nobody here runs stranger"):
        lead.hand_off("stranger", "shout").run()


def test_what_a_runner_reported_counts_more_than_what_it_returned(lead: LiveRun) -> None:
    """A report is given once."""
    handoff = lead.hand_off("worker", "one", run=lambda run: run.report("reported") or "returned")

    assert "reported" == handoff.wait().value


@pytest.mark.parametrize(
    "returned",
    [object(), {1, 2}, math.nan, LONE_SURROGATE, {"a": LONE_SURROGATE}, b"bytes", lambda: None],
    ids=["object", "set", "no number", "half a character", "one inside", "bytes", "function"],
)
def test_what_cannot_be_reported_fails_the_attempt(lead: LiveRun, returned: object) -> None:
    """The attempt ends, with the reason; nothing stays open."""
    result = lead.hand_off("worker", "one", run=lambda _: returned).wait()

    assert (State.FAILED, True) == (result.state, bool(result.reason))


def test_a_value_that_is_no_json_is_not_given(lead: LiveRun) -> None:
    """Whoever reads it would fail; whoever gives it is told."""
    with pytest.raises(InvalidValueError, match="is not JSON"):
        lead.report("done", value="{")
    assert None is lead.reported


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupt_ends_the_attempt_and_goes_on(lead: LiveRun, error: type[BaseException]) -> None:
    """Whoever stops the process is not swallowed, and the attempt does not stay open."""

    def interrupted(_: LiveRun) -> None:
        raise error

    handoff = lead.hand_off("worker", "one")
    with pytest.raises(error):
        handoff.run(interrupted)

    assert State.FAILED is handoff.state()


def test_a_runner_whose_attempt_was_ended_meanwhile_bothers_nobody(relay: Relay, lead: LiveRun) -> None:
    """The record says what happened; waiting gives that."""
    handoff = lead.hand_off("worker", "one")
    result = handoff.run(lambda _: relay.handoff(handoff.id).cancel(by=ANA, reason="stop"))

    assert (State.CANCELLED, "stop") == (result.state, result.reason)


def test_a_close_that_is_refused_fails_the_attempt(places: Places) -> None:
    """A runner that builds on what nobody verified, against the policy, has not delivered."""
    relay = places.relay(policy=HandoffPolicy(verified_only=True))

    def mid(run: LiveRun) -> str:
        with run.hand_off("leaf", "leaf") as leaf:
            leaf.report("done")
        return "mid done"

    result = relay.start("begin", by=ANA).hand_off("mid", "mid", run=mid).wait()

    assert (State.FAILED, "handoff.unverified") == (result.state, bodies(relay, "handoff.failed")[0].error)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("text", Report(result="text")),
        ("", Report()),
        (Report(result="r"), Report(result="r")),
        ([1, None, {"a": True}], Report(value=json.dumps([1, None, {"a": True}]))),
        (0, Report(value="0")),
        (False, Report(value="false")),
    ],
    ids=["text", "no text", "report", "json", "zero", "false"],
)
def test_reports_of_what_was_returned(returned: object, expected: Report) -> None:
    """A text is words, a report is itself, everything else is a value."""
    assert expected == report_of(returned)
