"""A run that is left without an end, and one that is closed."""

from batonpass import Relay


def raises(relay: Relay) -> None:
    """Its process goes away, and a day passes."""
    relay.start("Fix it", by="user:ana")


def near_miss(relay: Relay) -> None:
    """It comes to an end."""
    with relay.start("Fix it", by="user:ana"):
        pass
