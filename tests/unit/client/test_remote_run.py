"""Runs whose ledger is elsewhere: what they do is judged and recorded there, and signed here."""

import json

import pytest

from batonpass import Decision, tool
from batonpass.adapters.own_loop import recorded_agent
from batonpass.errors import GrantDeniedError
from batonpass.model.base.content_names import CONFIG
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import ReceiptQuery
from batonpass.telemetry import traced
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


def test_a_run_elsewhere_is_in_the_trace_of_its_program(place: Place) -> None:
    """Every request in a trace says so, others do not, and the run knows what to send on."""
    relay = place.elsewhere()
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with traced(caller):
        lead = relay.start("Fix it", by=ANA)
    lead.close()
    begun, *_, closed = relay.wire.sent

    assert ("/v1/runs", caller, None) == (begun[0], begun[1].get("traceparent"), closed[1].get("traceparent"))
    assert caller.split("-")[1] == lead.traceparent().split("-")[1]


def test_an_agent_elsewhere_says_its_parts(place: Place) -> None:
    """Model and tools of a decorated function are recorded there as they are here."""

    @recorded_agent("writer", may=["write:src/**"], model="m-1", tools=[write_file])
    def write(task: str) -> str:
        return task

    with place.elsewhere().start("Write", by=ANA):
        write("a letter")
    with place.relay.store.view() as view:
        accepted = [*view.find_receipts(ReceiptQuery(kind="handoff.accepted"))]
        (config,) = (read_texts(view, read_receipt(one))[CONFIG].words for one in accepted)

    assert {"model": "m-1", "tools": ["write_file"]} == json.loads(config or "")
