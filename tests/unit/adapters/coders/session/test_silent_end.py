"""Agents that do not tell the end of a session: who closes its run, and when."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.tool_kinds import Coder
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.adapters.coders.sessions import receipts

LATER = timedelta(minutes=11)


@pytest.fixture
def clock() -> FrozenClock:
    """Return a clock that the tests move."""
    return FrozenClock()


@pytest.fixture
def relay(project: Path, clock: FrozenClock) -> Iterator[Relay]:
    """Return a relay that goes by that clock."""
    with Relay.open("memory:", work_tree=project, clock=clock) as relay:
        yield relay
        relay.verify()


Tell = Callable[..., dict[str, Any]]


@pytest.fixture(params=[Coder.QWEN, Coder.OPENCODE])
def tell(request: pytest.FixtureRequest, project: Path, record: Callable[[], HookRecorder]) -> Tell:
    """Return what tells a hook of an agent something; with `anew`, by a recorder that knows nothing but the ledger."""
    recorders = [record()]

    def told(session: str, name: str, *, anew: bool = False, **more: object) -> dict[str, Any]:
        if anew:
            recorders.append(record())
        event = {"hook_event_name": name, "session_id": session, "cwd": str(project), **more}
        return recorders[-1].handle(event, request.param)

    return told


def a_prompt(words: str) -> dict[str, str]:
    """Return a prompt as both agents word it."""
    return {"prompt": words, "submitted_prompt": words, "prompt_id": words}


def ended(relay: Relay) -> list[str]:
    """Return why each root run ended, as its source says."""
    return [one["content"]["source"].get("status") for one in receipts(relay, "run.closed")]


@pytest.mark.parametrize("anew", [False, True])
def test_the_next_session_ends_it(tell: Tell, relay: Relay, clock: FrozenClock, *, anew: bool) -> None:
    """Also if another process recorded it, and with its last words."""
    tell("one", "UserPromptSubmit", **a_prompt("Do it"))
    tell("one", "Stop", last_assistant_message="done")
    clock.tick(LATER)
    assert [] == ended(relay)
    tell("two", "UserPromptSubmit", anew=anew, **a_prompt("Go on"))

    assert ["not told"] == ended(relay)
    assert ["done"] == [one["content"]["report"].strip('"') for one in receipts(relay, "run.closed")]


def test_one_that_was_busy_just_now_goes_on(tell: Tell, relay: Relay, clock: FrozenClock) -> None:
    """Two sessions may be open side by side."""
    tell("one", "UserPromptSubmit", **a_prompt("Do it"))
    tell("one", "Stop", last_assistant_message="done")
    clock.tick(timedelta(minutes=9))
    tell("two", "UserPromptSubmit", **a_prompt("Go on"))

    assert [] == ended(relay)


def test_one_that_is_in_a_call_goes_on(tell: Tell, relay: Relay, clock: FrozenClock) -> None:
    """A build may take an hour."""
    call = {"tool_name": "bash", "tool_use_id": "c1", "tool_call_id": "c1", "tool_input": {"command": "make"}}
    tell("one", "UserPromptSubmit", **a_prompt("Do it"))
    tell("one", "PreToolUse", **call)
    clock.tick(LATER)
    tell("two", "UserPromptSubmit", **a_prompt("Go on"))

    assert [] == ended(relay)


def test_one_that_goes_on_after_all_has_a_run_of_its_own(tell: Tell, relay: Relay, clock: FrozenClock) -> None:
    """Its user only thought for long; nothing is lost and nothing is a gap."""
    tell("one", "UserPromptSubmit", **a_prompt("Do it"))
    clock.tick(LATER)
    tell("two", "UserPromptSubmit", **a_prompt("Something else"))
    tell("one", "UserPromptSubmit", **a_prompt("And more"))

    assert 1 == len(ended(relay))
    assert 3 == len(receipts(relay, "run.started"))
    assert [] == receipts(relay, "run.gap")
