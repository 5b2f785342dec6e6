"""An approval that no key signed, and a confirmation, for which nobody needs a key."""

from batonpass import Relay, Run
from examples.findings.tools import send

POLICY = """
[policy]
enforce = true
[tiers]
irreversible = "approve"
"""


def _pay(run: Run) -> str:
    return run.call(send, "the printer", 100)


def raises(relay: Relay) -> None:
    """A person has to approve this, and anybody could have written this name."""
    with relay.start("Pay them", by="user:ana") as lead:
        handoff = lead.hand_off("clerk", "Pay the printer", run=_pay)
        handoff.wait()
        handoff.approve(by="user:ana")
        handoff.wait()


def near_miss(relay: Relay) -> None:
    """The lead itself wanted to look first, and does."""
    with relay.start("Tell them", by="user:ana") as lead:
        handoff = lead.hand_off("mailer", "Write to all customers", hold=True)
        handoff.approve(by="agent:lead")
        with handoff as mailer:
            mailer.report("written")
