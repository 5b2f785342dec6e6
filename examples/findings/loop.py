"""The same task handed off three times, and three tasks."""

from batonpass import Handling, Relay


def raises(relay: Relay) -> None:
    """Review and rewrite without end."""
    with relay.start("Write it", by="user:ana") as lead:
        for number in range(3):
            with lead.hand_off("writer", "Write the text again", handling=Handling(again=number)) as writer:
                writer.report(f"draft {number}")


def near_miss(relay: Relay) -> None:
    """Each round has another task."""
    with relay.start("Write it", by="user:ana") as lead:
        for chapter in range(3):
            with lead.hand_off("writer", f"Write chapter {chapter}") as writer:
                writer.report(f"draft of {chapter}")
