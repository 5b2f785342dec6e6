"""A task that needs an input which is not there, and one that has it."""

from batonpass import Brief, Relay


def raises(relay: Relay) -> None:
    """The receiver would have asked for the price list."""
    with relay.start("Price it", by="user:ana") as lead:
        with lead.hand_off("pricer", "Calculate the price", brief=Brief(inputs=["prices.csv"])) as pricer:
            pricer.report("12 EUR")


def near_miss(relay: Relay) -> None:
    """The price list is attached."""
    with relay.start("Price it", by="user:ana") as lead:
        lead.attach("prices.csv", b"a,b\n1,2\n")
        with lead.hand_off("pricer", "Calculate the price", brief=Brief(inputs=["prices.csv"])) as pricer:
            pricer.report("12 EUR")
