"""A call whose process is gone, and one that came to an end."""

from contextlib import suppress

from batonpass import Relay, tool
from examples.findings.tools import send


@tool(reversible=False, target="to")
def break_off(to: str) -> None:
    """Be interrupted in the middle, as a process that is stopped."""
    raise KeyboardInterrupt(to)


def raises(relay: Relay) -> None:
    """Did they get it or not?"""
    with suppress(KeyboardInterrupt), relay.start("Pay them", by="user:ana") as lead:
        lead.call(break_off, "the printer")


def near_miss(relay: Relay) -> None:
    """They got it."""
    with relay.start("Pay them", by="user:ana") as lead:
        lead.call(send, "the printer", 100)
