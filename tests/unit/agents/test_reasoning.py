"""What a native agent thought when it handed off: the message of its model, and its checkpoint, in the offer."""

import json
from typing import Any

from batonpass.accounts.handoff.reasoning import Reasoning, read_reasoning
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.agents.house import House

THOUGHT = "Billing knows the invoices; I do not."


def reasonings(house: House) -> list[Reasoning | None]:
    """Return what each offer points to, in order."""
    with house.relay.store.view() as view:
        offers = view.find_receipts(ReceiptQuery(kind="handoff.initiated"))
        return [read_reasoning(view, decode_receipt(offer.payload)) for offer in offers]


def words(reasoning: Reasoning | None) -> dict[str, Any]:
    """Return the message that is kept with an offer."""
    assert reasoning is not None
    assert reasoning.message is not None
    read: dict[str, Any] = json.loads(reasoning.message.words or "")
    return read


def test_the_root_s_offer_keeps_the_message_that_asked_for_it() -> None:
    """The model's own words and its call stand in one message, the second after the user's."""
    house = House()
    house.agent("billing", lambda _: "found")

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        return "ok" if turn.returned else {"handoff_to_billing": {"task": "Look it up", "rationale": THOUGHT}}

    house.agent("support", support, house.to("billing"))
    house.ask("support", "where?")
    (reasoning,) = reasonings(house)

    assert reasoning is not None
    assert (2, None) == (reasoning.pointer.message, reasoning.pointer.checkpoint)
    assert [("tool-call", "handoff_to_billing")] == [
        (part["part_kind"], part["tool_name"]) for part in words(reasoning)["parts"]
    ]
    assert THOUGHT in json.dumps(words(reasoning))


def test_a_child_s_offer_points_to_its_checkpoint_and_its_message() -> None:
    """After its first call a handed-off agent has a checkpoint; the message that hands on comes right after it."""
    house = House()
    house.agent("bank", lambda _: "paid")

    def billing(turn: Any) -> Any:  # noqa: ANN401 - a turn
        calls: list[Any] = [{"look": {"at": "invoices"}}, {"handoff_to_bank": {"task": "Was it paid?"}}, "it was"]
        return calls[len(turn.returned)]

    def look(at: str) -> str:
        return f"{at}: one is open"

    house.agent("billing", billing, look, house.to("bank"))
    house.agent(
        "support",
        lambda turn: "ok" if turn.returned else {"handoff_to_billing": {"task": "Look it up"}},
        house.to("billing"),
    )
    house.ask("support", "where?")
    _, second = reasonings(house)

    assert second is not None
    assert second.checkpoint is not None
    assert second.checkpoint.messages is not None
    kept = json.loads(house.relay.read(second.checkpoint.messages.id))
    assert (4, 3, "handoff_to_bank") == (
        second.pointer.message,
        len(kept),
        words(second)["parts"][0]["tool_name"],
    )


def test_two_handoffs_of_one_message_point_to_that_message() -> None:
    """A model that asks for two things at once thought once."""
    house = House()
    house.agent("billing", lambda _: "found")
    house.agent("bank", lambda _: "paid")

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        both = {"handoff_to_billing": {"task": "Look it up"}, "handoff_to_bank": {"task": "Was it paid?"}}
        return "ok" if turn.returned else both

    house.agent("support", support, house.to("billing"), house.to("bank"))
    house.ask("support", "where?")
    first, second = reasonings(house)

    assert first is not None
    assert second is not None
    assert (first.pointer.digest, 2) == (second.pointer.digest, second.pointer.message)
