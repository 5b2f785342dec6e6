"""What a tool can know about the call that it is in."""

import threading

from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import CallContext, current_call
from batonpass.relay import Relay
from tests.unit.handoff.places import bodies


def test_there_is_no_call_outside_of_one() -> None:
    """Code that no run called is in no call."""
    assert None is current_call()


def test_a_tool_knows_its_call(lead: LiveRun, relay: Relay) -> None:
    """The run, the call, its key and the attempt are those that were recorded before it was made."""
    seen = lead.call(current_call_of, 1)
    (requested,) = bodies(relay, "tool.requested")

    assert CallContext(run=lead.id, call=requested.call, key=requested.key, attempt=1) == seen
    assert None is current_call()


def test_a_call_within_a_call_is_the_inner_one(lead: LiveRun) -> None:
    """Tools that call tools know which is which, also after one has raised."""
    seen: list[CallContext | None] = []

    def inner() -> None:
        seen.append(current_call())
        raise ValueError

    def outer() -> None:
        seen.append(current_call())
        try:
            lead.call(inner)
        except ValueError:
            seen.append(current_call())

    lead.call(outer)

    assert seen[0] == seen[2]
    assert seen[0] != seen[1]


def test_threads_are_in_calls_of_their_own(lead: LiveRun) -> None:
    """What one thread calls is not current in another."""
    seen: list[CallContext | None] = []

    def start_a_thread() -> None:
        thread = threading.Thread(target=lambda: seen.append(current_call()))
        thread.start()
        thread.join(timeout=30)

    lead.call(start_a_thread)

    assert [None] == seen


def current_call_of(_: int) -> CallContext | None:
    return current_call()
