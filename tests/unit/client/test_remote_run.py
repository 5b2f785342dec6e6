"""Runs whose ledger is elsewhere: what they do is judged and recorded there, and signed here."""

import pytest

from batonpass import Decision, tool
from batonpass.errors import GrantDeniedError
from tests.unit.client.conftest import ANA, Place

WRITTEN: list[str] = []


@tool("write_file", target="path", reversible=True)
def write_file(path: str, text: str) -> str:
    """Write a file."""
    WRITTEN.append(f"{path}: {text}")
    return "written"


def test_a_tree_is_recorded_there_and_signed_here(place: Place) -> None:
    """The same names, the same receipts; no key of a run is ever on the control plane, and the ledger verifies."""
    relay = place.elsewhere()
    WRITTEN.clear()
    with relay.start("Fix it", by=ANA) as lead:
        lead.record(Decision("half-even"))
        lead.attach("a.txt", "hello")
        with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
            assert ("Edit", "written", b"hello") == (
                editor.task,
                editor.call(write_file, "src/a.py", text="x"),
                editor.read("a.txt"),
            )
            with pytest.raises(GrantDeniedError, match=r"editor may write:src/\*\*, tried write:ci.yml; lead holds it"):
                editor.call(write_file, "ci.yml", text="x")
            editor.checkpoint([{"role": "user"}])
            editor.report("done", open_questions=["why?"])
        result = lead.handoff("editor").result()

    assert ("done", ["src/a.py: x"]) == (result.value, WRITTEN)
    assert [
        "run.started",
        "run.recorded",
        "run.recorded",
        "handoff.initiated",
        "handoff.accepted",
        "tool.requested",
        "tool.completed",
        "tool.denied",
        "checkpoint.saved",
        "handoff.completed",
        "run.closed",
    ] == place.kinds()
    assert not list((place.home / "runs").glob("*.key"))
    place.relay.verify()
