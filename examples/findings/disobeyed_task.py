"""A call against a constraint, and one that keeps to it."""

from batonpass import Constraint, Relay
from examples.findings.tools import send

AT_MOST = Constraint(key="amount", operator="<=", value="100", binds_to="call:send.amount")


def raises(relay: Relay) -> None:
    """500 is more than 100."""
    with relay.start("Pay them", by="user:ana", items=[AT_MOST]) as lead:
        lead.call(send, "the printer", 500)


def near_miss(relay: Relay) -> None:
    """100 is not."""
    with relay.start("Pay them", by="user:ana", items=[AT_MOST]) as lead:
        lead.call(send, "the printer", 100)
