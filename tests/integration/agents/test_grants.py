"""Agents that are held to grants: what a model may not do it reads as an answer, and goes on."""

from typing import Any

import pytest

from batonpass import tool
from batonpass.errors import ConstraintViolatedError
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.agents.messages_api import Asked, MessagesApi, Said, Text, Use, serving
from tests.integration.agents.support import House, run_async

DONE: list[str] = []


@tool(target="path")
def write(path: str) -> str:
    """Write a file."""
    DONE.append(path)
    return "written"


def script(asked: Asked) -> Said:
    """Support hands to an editor, which tries what it may not, then what it may, and answers."""
    if "You are support" in asked.system:
        return Use("handoff_to_editor", {"task": "Write it"}) if asked.answers == 0 else Text("answered")
    tries = ("etc/passwd", "src/a.py")
    return Use("write", {"path": tries[asked.answers]}) if asked.answers < len(tries) else Text("done")


def played(*, editor: dict[str, Any], support: dict[str, Any]) -> tuple[MessagesApi, House]:
    """Let support hand to an editor, each with these rights."""
    DONE.clear()
    with serving(script) as api:
        house = House(api)
        house.agent("editor", tools=[write], **editor)
        house.agent("support", tools=[house.to("editor")], **support)
        run_async(lambda: house.ask("support", "Write it down", by="user:ana"))
        house.relay.verify()
        return api, house


def denials(house: House) -> list[str]:
    """Return by which rules calls were refused."""
    with house.relay.store.view() as view:
        found = [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery(kind="tool.denied"))]
    return [getattr(body, "rule", "") for body in found]


def told(api: MessagesApi) -> str:
    """Return everything that was sent to the models."""
    return "\n".join(asked.words for asked in api.asked)


def test_a_denied_call_comes_back_as_a_sentence() -> None:
    """The model reads what it may and what it tried, makes the other call, and the work is done."""
    api, house = played(editor={"may": ["write:src/**"]}, support={})

    assert (["src/a.py"], ["grant"]) == (DONE, denials(house))
    assert "editor may write:src/**, tried write:etc/passwd" in told(api)


def test_a_ceiling_cuts_what_its_sender_may_delegate() -> None:
    """Nobody says what the editor may: it gets what its ceiling and the grant of support have in common."""
    api, house = played(editor={"ceiling": ["write:src/**"]}, support={"may_delegate": ["write:**"]})

    assert (["src/a.py"], ["grant"]) == (DONE, denials(house))
    assert "support holds it" in told(api)


def test_what_cannot_be_given_is_told_to_whoever_hands_off() -> None:
    """The offer is refused before anything of the editor runs, and the model that asked reads why."""
    api, house = played(editor={"may": ["write:**"]}, support={"may_delegate": ["write:src/**"]})

    assert ([], []) == (DONE, denials(house))
    assert "Denied, and not made: " in told(api)
    assert "You are editor" not in "\n".join(asked.system for asked in api.asked)


def test_tokens_are_counted_and_run_out() -> None:
    """The first answers use up what there is; then no model is asked any more, and the record says by which rule."""
    DONE.clear()
    with serving(script) as api:
        house = House(api)
        house.agent("editor", tools=[write], may=["write:**"])
        with pytest.raises(ConstraintViolatedError, match="at most 1 tokens"):
            run_async(lambda: house.ask("editor", "Write it down", by="user:ana", limits="at most 1 tokens"))
        house.relay.verify()

        assert (1, ["limit"]) == (len(api.asked), denials(house)[-1:])


def asks(asked: Asked) -> Said:
    """Support hands to an editor, which writes, asks what is left, writes again, and answers."""
    if "You are support" in asked.system:
        return Use("handoff_to_editor", {"task": "Write it"}) if asked.answers == 0 else Text("answered")
    steps = (Use("write", {"path": "src/a.py"}), Use("show_grant", {}), Use("write", {"path": "src/b.py"}))
    return steps[asked.answers] if asked.answers < len(steps) else Text("done")


def test_a_model_reads_what_it_may_and_what_is_left() -> None:
    """In the payload that reaches the provider: in the user's role, and counted again when it asks."""
    DONE.clear()
    with serving(asks) as api:
        house = House(api)
        house.agent("editor", tools=[write], may=["write:src/**; at most 2 calls"])
        house.agent("support", tools=[house.to("editor")], may_delegate=["write:src/**; at most 7 calls"])
        run_async(lambda: house.ask("support", "Write it down", by="user:ana"))
        house.relay.verify()
    first, *_, last = (asked for asked in api.asked if "You are editor" in asked.system)
    with house.relay.store.view() as view:
        called = [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery(kind="tool.requested"))]

    assert (True, False) == tuple("# What you may do" in text for text in (first.words, first.system))
    for told in (
        "You may: write:src/**; at most 2 calls (2 of 2 calls left)",
        "You may hand on: nothing",
        "Granted: user:ana to support: nothing of its own, to hand on write:src/**; at most 7 calls; support to editor",
        "show_grant() says what is left",
    ):
        assert told in first.words
    assert "(1 of 2 calls left)" in last.words
    assert (["src/a.py", "src/b.py"], ["write", "write"]) == (DONE, [getattr(body, "tool", "") for body in called])


def test_an_observed_model_is_told_that_nothing_is_blocked() -> None:
    """It is offered no tool to ask what is left: nothing is counted."""
    api, _ = played(editor={}, support={})
    first = next(asked for asked in api.asked if "You are editor" in asked.system)

    assert "You are observed: what you do is recorded, and nothing is blocked" in first.words
    assert "show_grant" not in first.tools


def test_a_root_that_is_held_can_ask_too() -> None:
    """It has no briefing: what its user said is all that it is told, and the tool says the rest."""
    api, _ = played(editor={"may": ["write:src/**"]}, support={"may_delegate": ["write:src/**"]})
    first = next(asked for asked in api.asked if "You are support" in asked.system)

    assert ("show_grant" in first.tools, "# What you may do" in first.words) == (True, False)
