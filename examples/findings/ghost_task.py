"""Work that nobody did, and work that left a trace."""

from batonpass import Brief, Relay
from examples.findings.tools import write


def raises(relay: Relay) -> None:
    """The file that should change is untouched."""
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix the rounding", brief=Brief(expects=["src/invoice.py"])) as editor:
            editor.report("done, all tests pass")


def near_miss(relay: Relay) -> None:
    """The file was written."""
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix the rounding", brief=Brief(expects=["src/invoice.py"])) as editor:
            editor.call(write, "src/invoice.py")
            editor.report("done")
