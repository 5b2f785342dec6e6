"""A consequential call after reading a page, and a harmless one."""

from batonpass import Relay
from examples.findings.tools import look, read_page, send


def raises(relay: Relay) -> None:
    """Whoever wrote the page may have decided this."""
    with relay.start("What is new?", by="user:ana") as lead:
        lead.call(read_page, "https://shop.example")
        lead.call(send, "the landlord", 700)


def near_miss(relay: Relay) -> None:
    """Looking changes nothing."""
    with relay.start("What is new?", by="user:ana") as lead:
        lead.call(read_page, "https://shop.example")
        lead.call(look, "notes.md")
