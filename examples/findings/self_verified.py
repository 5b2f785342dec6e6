"""A result that its producer verified, and one that somebody else did."""

from batonpass import Relay


def _verify(relay: Relay, by: str) -> None:
    with relay.start("Fix it", by="user:ana") as lead:
        handoff = lead.hand_off("editor", "Fix the rounding")
        with handoff as editor:
            editor.report("fixed")
        handoff.verify(by=by, verdict="I looked at it")


def raises(relay: Relay) -> None:
    """The editor praises its own work."""
    _verify(relay, "agent:editor")


def near_miss(relay: Relay) -> None:
    """Ana looked at it."""
    _verify(relay, "user:ana")
