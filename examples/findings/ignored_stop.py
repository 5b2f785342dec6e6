"""A run that tries again and again beyond its limit, and one that stops."""

from contextlib import suppress

from batonpass import BatonpassError, Grant, Relay
from examples.findings.tools import write


def _go_on(relay: Relay, tries: int) -> None:
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix it", grant=Grant(may=["write:src/**"], limits="at most 1 calls")) as editor:
            for number in range(1 + tries):
                with suppress(BatonpassError):
                    editor.call(write, f"src/{number}.py")
            editor.report("fixed one")


def raises(relay: Relay) -> None:
    """One call is allowed, and it tries three more."""
    _go_on(relay, 3)


def near_miss(relay: Relay) -> None:
    """It is told once, and stops."""
    _go_on(relay, 1)
