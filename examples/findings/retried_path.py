"""A task that orders what was rejected, and one that orders something else."""

from batonpass import RejectedPath, Relay


def _order(relay: Relay, task: str) -> None:
    with relay.start("Make it faster", by="user:ana") as lead:
        lead.record(RejectedPath("cache results in memory", why="it grows without end"))
        with lead.hand_off("editor", task) as editor:
            editor.report("done")


def raises(relay: Relay) -> None:
    """It was tried, and it did not work."""
    _order(relay, "Cache results in memory")


def near_miss(relay: Relay) -> None:
    """This was not tried."""
    _order(relay, "Add an index to the table of results")
