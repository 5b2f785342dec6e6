"""What a program may say: each value is checked where it enters, so nothing is signed that no reader accepts."""

from collections.abc import Callable
from typing import Any

import pytest

from batonpass import Decision, Grant, Relay, Run
from batonpass.errors import InvalidValueError
from batonpass.testing import a_relay, a_run, observe

LONG = "x" * 201


@pytest.mark.parametrize(
    ("act", "field"),
    [
        pytest.param(lambda relay, _: relay.start("x", by="user:ana", agent=""), "agent", id="an agent without a name"),
        pytest.param(
            lambda relay, _: relay.start("x", by="user:ana", agent=LONG), "agent", id="an agent with an endless name"
        ),
        pytest.param(
            lambda relay, _: relay.start("x", by="user:ana", agent=5), "agent", id="an agent that is a number"
        ),
        pytest.param(lambda relay, _: relay.start("x", by=""), "by", id="nobody"),
        pytest.param(lambda relay, _: relay.start("x", by=LONG), "by", id="a principal with an endless name"),
        pytest.param(lambda _, run: run.hand_off("", "x"), "to", id="a receiver without a name"),
        pytest.param(lambda _, run: run.hand_off(LONG, "x"), "to", id="a receiver with an endless name"),
        pytest.param(lambda _, run: run.hand_off("editor", 5), "task", id="a task that is no text"),
        pytest.param(lambda _, run: run.hand_off("editor", "\ud800"), "hand_off", id="half of a surrogate pair"),
        pytest.param(lambda _, run: run.hand_off("editor", "x", may="read:a"), "may", id="one permit for a list"),
        pytest.param(
            lambda _, run: run.hand_off("editor", "x", grant=Grant(may="a:b")),  # type: ignore[arg-type]
            "may",
            id="a permit for a list in a grant",
        ),
        pytest.param(lambda _, run: run.record("tests are slow"), "items", id="a text for an item"),
        pytest.param(lambda _, run: run.record(Decision(5)), "text", id="an item whose text is a number"),  # type: ignore[arg-type]
        pytest.param(lambda _, run: run.record(), "record", id="nothing to record"),
        pytest.param(lambda _, run: run.begin_call("", b"[]"), "tool", id="a tool without a name"),
        pytest.param(lambda _, run: run.begin_call(LONG, b"[]"), "tool", id="a tool with an endless name"),
        pytest.param(lambda _, run: run.begin_call("t", b"[}"), "begin_call", id="arguments that are no JSON"),
        pytest.param(lambda _, run: run.settle("call_1", "later", by="user:ana"), "how", id="a third way to settle"),
        pytest.param(lambda _, run: run.report("x", value={1: 2}) or run.close(), "close", id="a report beyond JSON"),
    ],
)
def test_a_value_without_meaning_is_refused_before_it_is_signed(act: Callable[[Relay, Run], Any], field: str) -> None:
    """The error names the field, and the ledger has nothing of it."""
    with a_relay() as relay:
        run = a_run(relay)
        before = observe(relay).kinds()
        with pytest.raises(InvalidValueError, match=field):
            act(relay, run)

        assert before == observe(relay).kinds()
