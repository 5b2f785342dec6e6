"""Effects that tools tell of: said while they run, or declared; and what they return, held against constraints."""

import json
from typing import Any

import pytest

from batonpass.errors import ConstraintViolatedError, InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import CallContext, current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import EffectKind, Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, bodies, receipts, words

ORDERS = "https://shop.example/orders"


def call_here() -> CallContext:
    """Return the call that a tool is in."""
    found = current_call()
    assert found is not None
    return found


def told(relay: Relay, kind: Kind = Kind.TOOL_COMPLETED) -> list[dict[str, Any]]:
    """Return the words of all effects of outcomes."""
    return [
        json.loads(words(relay, receipt, name))
        for receipt in receipts(relay, kind)
        for name in sorted(receipt.content)
        if name.startswith("effect.")
    ]


@tool("order", effect="http")
def order(number: int) -> int:
    """Send an order, and say so."""
    call_here().effect("http", ORDERS, how="POST")
    call_here().effect("database", "orders", how="insert", count=number)
    return number


@tool("notify", target="to", effect="message")
def notify(to: str) -> str:
    """Send a message, and leave it to what is declared."""
    return f"sent to {to}"


def test_a_tool_says_what_it_changed(relay: Relay, lead: LiveRun) -> None:
    """Kind and count are signed, what and how are words; what it says itself replaces what is declared."""
    lead.call(order, 3)
    (done,) = bodies(relay, Kind.TOOL_COMPLETED)

    assert [(EffectKind.HTTP, None), (EffectKind.DATABASE, 3)] == [(one.kind, one.count) for one in done.effects]
    assert [
        {"v": 0, "kind": "http", "target": ORDERS, "how": "POST"},
        {"v": 0, "kind": "database", "target": "orders", "how": "insert", "count": 3},
    ] == told(relay)


def test_the_same_target_is_known_again(relay: Relay, lead: LiveRun) -> None:
    """Within a tree equal targets have equal digests, also that of the request; in another tree they do not."""
    for to in ("ana@example.org", "ana@example.org", "bob@example.org"):
        lead.call(notify, to)
    relay.start("Again", by=ANA).call(notify, "ana@example.org")
    asked = [body.target for body in bodies(relay, Kind.TOOL_REQUESTED)]
    done = [body.effects[0].target for body in bodies(relay, Kind.TOOL_COMPLETED)]

    assert asked == done
    assert done[0] == done[1]
    assert 3 == len(set(done))


def test_a_call_that_raises_tells_what_it_had_done(relay: Relay, lead: LiveRun) -> None:
    """Only what it said: what is declared may not have happened."""

    @tool("half", effect="message")
    def half() -> None:
        call_here().effect("http", ORDERS, how="POST")
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        lead.call(half)

    assert [ORDERS] == [one["target"] for one in told(relay, Kind.TOOL_FAILED)]


def test_what_is_said_too_late_is_refused(lead: LiveRun) -> None:
    """A call whose outcome is written changes nothing more that anybody would read."""
    kept: list[CallContext] = []
    lead.call(tool("keep")(lambda: kept.append(call_here())))

    with pytest.raises(InvalidValueError, match="the call has ended"):
        kept[0].effect("http", ORDERS)


def test_an_endless_list_is_cut_and_says_so(relay: Relay, lead: LiveRun) -> None:
    """A tool that reports each of very many is not stopped by it."""

    @tool("flood")
    def flood() -> None:
        for number in range(1001):
            call_here().effect("custom", f"thing {number}")

    lead.call(flood)
    (done,) = bodies(relay, Kind.TOOL_COMPLETED)

    assert (1000, ("effects.cut",)) == (len(done.effects), done.flags)


@pytest.mark.parametrize(
    ("kind", "target", "count"),
    [("telepathy", "x", None), ("http", "", None), ("http", "x", -1)],
    ids=["no such kind", "no target", "less than none"],
)
def test_an_effect_that_is_none_is_refused(lead: LiveRun, kind: str, target: str, count: int | None) -> None:
    """Where the tool says it, so that whoever wrote it learns of it."""
    with pytest.raises(InvalidValueError):
        lead.call(tool("wrong")(lambda: call_here().effect(kind, target, count=count)))


def test_secrets_in_targets_are_taken_out(relay: Relay, lead: LiveRun) -> None:
    """As they are in arguments."""
    token = "ghp_" + "a" * 36
    lead.call(tool("leak")(lambda: call_here().effect("http", f"https://{token}@host/")))

    assert ["https://[redacted]@host/"] == [one["target"] for one in told(relay)]


def test_what_only_reads_has_no_effect() -> None:
    """Both cannot be declared."""
    with pytest.raises(InvalidValueError, match="declared to change nothing"):
        tool("look", reads=True, effect="http")(lambda: None)


class TestReturned:
    """A constraint that binds to what a call returns is checked as soon as it is there."""

    LIMIT = Constraint(key="rows", operator="<=", value="10", binds_to="returned:query.rows")

    @pytest.mark.parametrize("mode", ["observed", "enforced"])
    def test_a_broken_one_is_on_record_and_stops_an_enforced_run(self, relay: Relay, mode: str) -> None:
        """The call is made and has its outcome either way; only who is held to it learns it as an error."""
        lead = relay.start("Count", by=ANA, mode=mode)
        lead.record(self.LIMIT)
        query = tool("query", reads=True)(lambda rows: {"rows": rows})
        assert {"rows": 10} == lead.call(query, 10)
        if mode == "observed":
            lead.call(query, 11)
        else:
            with pytest.raises(ConstraintViolatedError, match="rows <= 10 is violated: 'rows' is 11"):
                lead.call(query, 11)

        assert [(), ("result.constraint",)] == [body.flags for body in bodies(relay, Kind.TOOL_COMPLETED)]

    def test_other_tools_are_not_held_to_it(self, relay: Relay, lead: LiveRun) -> None:
        """Nor does an argument of that name count, nor the result of a run."""
        lead.record(self.LIMIT)
        lead.call(tool("other", reads=True)(lambda: {"rows": 99}))
        lead.call(tool("query", reads=True)(lambda rows: {"rows": rows - 90}), 99)

        assert [(), ()] == [body.flags for body in bodies(relay, Kind.TOOL_COMPLETED)]

    def test_a_value_that_is_not_there_breaks_it(self, relay: Relay, lead: LiveRun) -> None:
        """Nobody can tell whether what is missing would keep to it."""
        lead.record(self.LIMIT)
        lead.call(tool("query", reads=True)(lambda: "many"))

        assert [("result.constraint",)] == [body.flags for body in bodies(relay, Kind.TOOL_COMPLETED)]

    def test_how_a_command_ended_can_be_bound(self, relay: Relay) -> None:
        """A command returns its exit code like any other field."""
        lead = relay.start("Check", by=ANA, mode="enforced")
        lead.record(Constraint(key="tests", operator="=", value="0", binds_to="returned:shell.exit_code"))
        lead.shell(["true"])
        with pytest.raises(ConstraintViolatedError, match="'exit_code' is 1"):
            lead.shell(["false"])
