"""Work that begins before a blocking question is answered, and work that waits for nothing."""

from batonpass import OpenQuestion, Relay


def raises(relay: Relay) -> None:
    """Nobody knows the currency, and the pricer begins."""
    with relay.start("Price it", by="user:ana") as lead:
        lead.record(OpenQuestion("Which currency?", blocking=True))
        with lead.hand_off("pricer", "Calculate the price") as pricer:
            pricer.report("12")


def near_miss(relay: Relay) -> None:
    """The question does not block."""
    with relay.start("Price it", by="user:ana") as lead:
        lead.record(OpenQuestion("Should cents be shown?"))
        with lead.hand_off("pricer", "Calculate the price") as pricer:
            pricer.report("12 EUR")
