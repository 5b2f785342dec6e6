"""A file that changes behind everybody's back, and one that a call changes."""

import subprocess
from pathlib import Path

from batonpass import Relay, tool


@tool(target="path")
def edit(path: str) -> None:
    """Write a real file, so that the change is recorded."""
    Path(path).write_text("changed\n", encoding="utf-8")


def _work(relay: Relay, path: str) -> None:
    subprocess.run(["git", "init", "-q"], check=True)  # noqa: S607 - changes are seen in a work tree
    with relay.start("Fix it", by="user:ana") as lead:
        with lead.hand_off("editor", "Fix the typo", may=["write:one.py"]) as editor:
            editor.call(edit, "one.py")
            Path(path).write_text("changed\n", encoding="utf-8")
            editor.report("fixed")


def raises(relay: Relay) -> None:
    """No call changed the second file."""
    _work(relay, "two.py")


def near_miss(relay: Relay) -> None:
    """A call changed the only file."""
    _work(relay, "one.py")
