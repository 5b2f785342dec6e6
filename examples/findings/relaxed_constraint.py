"""A constraint that somebody lifts, and one that stands."""

from batonpass import Constraint, Relay


def raises(relay: Relay) -> None:
    """From here on, nobody has to care about the budget."""
    with relay.start("Book it", by="user:ana") as lead:
        (budget,) = lead.record(Constraint("Stay below 500 euro"), by="user:ana")
        lead.relax(budget, by="user:ana", reason="it is urgent")


def near_miss(relay: Relay) -> None:
    """The budget stands."""
    with relay.start("Book it", by="user:ana") as lead:
        lead.record(Constraint("Stay below 500 euro"), by="user:ana")
