"""A result with a question that blocks it, and one with a remark."""

from batonpass import OpenQuestion, Relay


def raises(relay: Relay) -> None:
    """Done, and yet the main thing is open."""
    with relay.start("Price it", by="user:ana") as lead, lead.hand_off("pricer", "Calculate the price") as pricer:
        pricer.report("done", open_questions=[OpenQuestion("Which currency?", blocking=True)])


def near_miss(relay: Relay) -> None:
    """A question that blocks nothing."""
    with relay.start("Price it", by="user:ana") as lead, lead.hand_off("pricer", "Calculate the price") as pricer:
        pricer.report("done", open_questions=[OpenQuestion("Should cents be shown?")])
