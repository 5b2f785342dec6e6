"""A reviewer that edits, and an editor that does."""

import subprocess
from pathlib import Path

from batonpass import Brief, Relay, tool


@tool(target="path")
def edit(path: str) -> None:
    """Write a real file, so that the change is recorded."""
    Path(path).write_text("changed\n", encoding="utf-8")


def _work(relay: Relay, role: str) -> None:
    subprocess.run(["git", "init", "-q"], check=True)  # noqa: S607 - changes are seen in a work tree
    with relay.start("Check it", by="user:ana") as lead:
        with lead.hand_off("rex", "Look at the change", brief=Brief(role=role)) as child:
            child.call(edit, "invoice.py")
            child.report("looks good")


def raises(relay: Relay) -> None:
    """The reviewer changes what it should judge."""
    _work(relay, "reviewer")


def near_miss(relay: Relay) -> None:
    """That is what an editor is for."""
    _work(relay, "editor")
