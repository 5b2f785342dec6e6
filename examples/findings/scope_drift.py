"""A run that is only observed goes beyond its grant, and one that stays within it."""

from batonpass import Relay
from examples.findings.tools import write


def raises(relay: Relay) -> None:
    """The editor writes outside of src."""
    with relay.start("Fix it", by="user:ana", may=["write:src/**"], mode="observed") as lead:
        lead.call(write, ".github/ci.yml")


def near_miss(relay: Relay) -> None:
    """The editor writes within src."""
    with relay.start("Fix it", by="user:ana", may=["write:src/**"], mode="observed") as lead:
        lead.call(write, "src/ci.yml")
