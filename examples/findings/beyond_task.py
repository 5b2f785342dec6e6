"""An agent that also changes what its task does not name; and one that also changes the test."""

from batonpass import Brief, Relay, Run
from examples.findings.tools import write

BRIEF = Brief(rationale="the tax office wants it", expects=["src/invoice.py"])


def _fix(editor: Run, also: str) -> None:
    editor.call(write, "src/invoice.py")
    editor.call(write, also)
    editor.report("it rounds half-even now")


def raises(relay: Relay) -> None:
    """The grant covers it, and nobody asked for it."""
    with relay.start("Fix the rounding", by="user:ana") as lead:
        with lead.hand_off("editor", "Make total() round half-even", may=["write:**"], brief=BRIEF) as editor:
            _fix(editor, "deploy/production.yml")


def near_miss(relay: Relay) -> None:
    """A test of what was to change belongs to it."""
    with relay.start("Fix the rounding", by="user:ana") as lead:
        with lead.hand_off("editor", "Make total() round half-even", may=["write:**"], brief=BRIEF) as editor:
            _fix(editor, "tests/test_invoice.py")
