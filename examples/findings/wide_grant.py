"""A grant that is wider than five others for the same sort of task; and one for another file."""

from batonpass import Relay
from examples.findings.tools import write


def _update(relay: Relay, week: int, may: str) -> None:
    with relay.start(f"Week {week}", by="user:ana") as lead:
        with lead.hand_off("updater", f"Update the lock file of week {week}", may=[may]) as updater:
            updater.call(write, f"locks/{week}.lock")
            updater.report("updated")


def raises(relay: Relay) -> None:
    """The sixth time the same task gets everything."""
    for week in range(5):
        _update(relay, week, f"write:locks/{week}.lock")
    _update(relay, 5, "write:**")


def near_miss(relay: Relay) -> None:
    """Each week has its own file, and the sixth one too."""
    for week in range(6):
        _update(relay, week, f"write:locks/{week}.lock")
