"""The same call three times, and three different ones."""

from batonpass import Relay
from examples.findings.tools import write


def raises(relay: Relay) -> None:
    """Nothing comes of it, and it goes on."""
    with relay.start("Fix it", by="user:ana") as lead:
        for _ in range(3):
            lead.call(write, "src/a.py", "x = 1")


def near_miss(relay: Relay) -> None:
    """Each call has its own file."""
    with relay.start("Fix it", by="user:ana") as lead:
        for number in range(3):
            lead.call(write, f"src/{number}.py", "x = 1")
