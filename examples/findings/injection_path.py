"""A payment in the words of a page, and one that was known before."""

from batonpass import Relay
from examples.findings.tools import read_page, send


def raises(relay: Relay) -> None:
    """The account stands on the page."""
    with relay.start("What is new?", by="user:ana") as lead:
        lead.call(read_page, "https://shop.example")
        lead.call(send, "DE89370400440532013000", 9800)


def near_miss(relay: Relay) -> None:
    """Nothing was read from outside."""
    with relay.start("Pay rent", by="user:ana") as lead:
        lead.call(send, "DE89370400440532013000", 9800)
