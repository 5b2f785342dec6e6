"""An approval of something that nobody showed, and a refusal, for which nobody has to read everything."""

from batonpass import Relay


def raises(relay: Relay) -> None:
    """Ana approves without having seen anything."""
    with relay.start("Tell them", by="user:ana") as lead:
        handoff = lead.hand_off("mailer", "Write to all customers", hold=True)
        handoff.approve(by="user:ana")
        with handoff as mailer:
            mailer.report("written")


def near_miss(relay: Relay) -> None:
    """Ana denies it at once."""
    with relay.start("Tell them", by="user:ana") as lead:
        handoff = lead.hand_off("mailer", "Write to all customers", hold=True)
        handoff.deny(by="user:ana", reason="not today")
