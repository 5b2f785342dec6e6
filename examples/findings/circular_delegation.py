"""Work that comes back to whoever waits for it, and work that goes on."""

from batonpass import Relay


def _pass_on(relay: Relay, last: str) -> None:
    with relay.start("Decide it", by="user:ana") as lead, lead.hand_off("planner", "Make a plan") as planner:
        with planner.hand_off("lawyer", "Is it legal?") as lawyer:
            with lawyer.hand_off(last, "What is planned?") as asked:
                asked.report("this")
            lawyer.report("yes")
        planner.report("a plan")


def raises(relay: Relay) -> None:
    """The planner waits for the lawyer, who asks the planner."""
    _pass_on(relay, "planner")


def near_miss(relay: Relay) -> None:
    """The lawyer asks somebody else."""
    _pass_on(relay, "clerk")
