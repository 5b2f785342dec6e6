"""More items than a baton carries, and a few."""

from batonpass import Decision, Relay


def _hand_on(relay: Relay, decisions: int) -> None:
    with relay.start("Plan it", by="user:ana") as lead:
        lead.record(*(Decision(f"decision number {number}") for number in range(decisions)))
        with lead.hand_off("planner", "Go on") as planner:
            planner.report("planned")


def raises(relay: Relay) -> None:
    """The oldest decisions stay behind."""
    _hand_on(relay, 300)


def near_miss(relay: Relay) -> None:
    """All of them travel."""
    _hand_on(relay, 3)
