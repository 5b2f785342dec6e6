"""The HTTP interface and telemetry: callers' traces come in, and metrics go out to whoever reads everything."""

import pytest

from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.bodies.body import HandoffInitiated, RunStarted
from batonpass.records.text import read_receipt
from batonpass.store.port import ReceiptQuery
from tests.unit.server.conftest import House
from tests.unit.server.visitor import Visitor

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = f"00-{TRACE}-{SPAN}-01"


def told(house: House, run: str) -> list[object]:
    """Return the bodies in the stream of a run."""
    with house.relay.store.view() as view:
        return [read_receipt(one).body for one in view.find_receipts(ReceiptQuery(stream=StreamId(RunId(run))))]


def test_a_run_and_an_offer_are_in_their_callers_trace(house: House) -> None:
    """The header is recorded with what it began, and the answer says what to send on."""
    agent = house.visitor("agent")
    begun = agent.post("/v1/runs", {"intent": "Fix it"}, traceparent=CALLER).json
    run = begun["run"]["id"]
    visitor = Visitor(agent.app, agent.token, begun["proof"])
    visitor.post(f"/v1/runs/{run}/handoffs", {"to": "editor", "task": "Do it", "may": ["read:x"]}, traceparent=CALLER)
    bodies = told(house, run)

    assert [CALLER] == [one.trace for one in bodies if isinstance(one, RunStarted)]
    assert [CALLER] == [one.trace for one in bodies if isinstance(one, HandoffInitiated)]
    assert (TRACE, False) == (begun["task"]["traceparent"].split("-")[1], SPAN in begun["task"]["traceparent"])


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("00-xyz", None, id="no trace"),
        pytest.param(f"00-{'0' * 32}-{SPAN}-01", None, id="no trace at all"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", None, id="no span"),
        pytest.param(f"00-{TRACE.upper()}-{SPAN}-01", None, id="in capitals"),
        pytest.param(f"{CALLER}-more", None, id="too much for its version"),
        pytest.param(f"ff-{TRACE}-{SPAN}-01", None, id="no version"),
        pytest.param(f"cc-{TRACE}-{SPAN}-09-what-comes", f"00-{TRACE}-{SPAN}-09", id="a later version"),
        pytest.param("x" * 5000, None, id="very long"),
        pytest.param(f" {CALLER}\t", CALLER, id="with blanks"),
    ],
)
def test_a_broken_trace_is_ignored(house: House, sent: str, kept: str | None) -> None:
    """A trace never decides whether something is done."""
    begun = house.visitor("agent").post("/v1/runs", {"intent": "Fix it"}, traceparent=sent)

    assert 201 == begun.status
    assert [kept] == [one.trace for one in told(house, begun.json["run"]["id"]) if isinstance(one, RunStarted)]


def test_a_trace_ends_with_its_request(house: House) -> None:
    """The next request, without one, is in none."""
    agent = house.visitor("agent")
    agent.post("/v1/runs", {"intent": "Fix it"}, traceparent=CALLER)
    run = agent.post("/v1/runs", {"intent": "Fix that"}).json["run"]["id"]

    assert [None] == [one.trace for one in told(house, run) if isinstance(one, RunStarted)]


def test_metrics_are_for_whoever_reads_everything(house: House) -> None:
    """Prometheus comes with the token of an auditor; an agent is refused."""
    house.visitor("agent").post("/v1/runs", {"intent": "Fix it"})
    house.plane.metrics.refresh()
    shown = house.visitor("auditor").get("/metrics")

    assert ("text/plain; version=0.0.4; charset=utf-8", 200) == (shown.headers["content-type"], shown.status)
    assert b'batonpass_receipts_total{kind="run.started"} 1\n' in shown.body
    scraped = house.visitor("auditor").get("/metrics", accept="application/openmetrics-text;version=1.0.0,*/*;q=0.1")

    assert "application/openmetrics-text; version=1.0.0; charset=utf-8" == scraped.headers["content-type"]
    assert (shown.body.count(b"\n") + 1, True) == (scraped.body.count(b"\n"), scraped.body.endswith(b"# EOF\n"))
    assert (403, 401) == (house.visitor("agent").get("/metrics").status, house.visitor().get("/metrics").status)
