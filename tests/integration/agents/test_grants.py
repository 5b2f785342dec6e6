"""Agents that are held to grants: what a model may not do it reads as an answer, and goes on."""

from typing import Any

import pytest

from batonpass import tool
from batonpass.errors import ConstraintViolatedError
from batonpass.store.port import ReceiptQuery
from batonpass.wire.codec import decode_receipt
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
