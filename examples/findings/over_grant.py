"""A grant with a permit that the task did not need, and one that was used in full."""

from batonpass import Relay
from examples.findings.tools import write


def raises(relay: Relay) -> None:
    """Nobody pushes."""
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix the typo", may=["write:src/**", "push:main"]) as editor:
            editor.call(write, "src/a.py")
            editor.report("fixed")


def near_miss(relay: Relay) -> None:
    """The only permit is used."""
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix the typo", may=["write:src/**"]) as editor:
            editor.call(write, "src/a.py")
            editor.report("fixed")
