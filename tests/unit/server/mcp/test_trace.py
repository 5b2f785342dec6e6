"""The trace of an MCP client: it is in the `_meta` of a call, and recorded with what the call begins."""

import pytest

from batonpass.model.bodies.body import Kind, RunStarted
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.server.control_plane import ControlPlane
from batonpass.store.port import ReceiptQuery
from tests.unit.server.mcp.talk import MODES, by_user, run, talking

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param({"traceparent": CALLER}, CALLER, id="a trace"),
        pytest.param({"traceparent": "00-broken"}, None, id="a broken one"),
        pytest.param({"traceparent": 7}, None, id="no text"),
        pytest.param({}, None, id="none"),
    ],
)
def test_a_run_is_in_the_trace_of_its_client(
    relay: Relay, mode: str, sent: dict[str, object], kept: str | None
) -> None:
    """A trace is recorded, and one that is broken is ignored."""

    async def talk() -> bool:
        async with talking(by_user(ControlPlane.over(relay)), mode) as opened:
            done = await opened.client.call_tool("start", {"intent": "Fix it"}, meta=sent)  # type: ignore[arg-type]
            return done.is_error

    assert not run(talk)
    with relay.store.view() as view:
        begun = [read_receipt(one).body for one in view.find_receipts(ReceiptQuery(kind=Kind.RUN_STARTED))]
    assert [kept] == [body.trace for body in begun if isinstance(body, RunStarted)]
