"""Servers with strange habits of reading, as processes behind a real proxy: no line brings a call past it."""

import json
import sys
from pathlib import Path

import pytest

from batonpass.relay import Relay
from tests.mcp.ledgers import calls_in
from tests.mcp.servers import proxied
from tests.mcp.wire import Wire
from tests.unit.adapters.mcp import hostile_server
from tests.unit.adapters.mcp.spellings import HIDDEN

pytestmark = pytest.mark.slow

HABITS = [
    pytest.param("carriage returns", "the last key", id="ends lines at a carriage return"),
    pytest.param("all separators", "the first key", id="ends lines at every separator, takes the first key"),
    pytest.param("streams", "the last key", id="reads one value after another"),
    pytest.param("line feeds", "any case", id="does not mind case"),
]


def bought(place: Path, splitter: str, reader: str, *options: str) -> int:
    """Send everything that hides a call; return how often such a server found it."""
    (place / ".batonpass").mkdir()
    notes = place / "notes.jsonl"
    notes.touch()
    server = [sys.executable, hostile_server.__file__, splitter, reader, str(notes)]
    with Wire(proxied(server, "--name", "shop", *options), place) as wire:
        for number, line in enumerate(HIDDEN.values()):
            wire.send_line(line if isinstance(line, bytes) else line.encode())
            wire.send({"id": f"after {number}", "method": "ping"})
            while wire.receive().get("id") != f"after {number}":
                pass
    return ["buy" == json.loads(line)[0] for line in notes.read_text(encoding="utf-8").splitlines()].count(True)


@pytest.mark.parametrize(("splitter", "reader"), HABITS)
def test_a_strange_server_behind_an_enforced_proxy_gets_nothing_that_was_not_granted(
    tmp_path: Path, splitter: str, reader: str
) -> None:
    """And answers everything that follows: the session goes on after each such line."""
    assert 0 == bought(tmp_path, splitter, reader, "--may", "call:shop/price")


@pytest.mark.parametrize(("splitter", "reader"), HABITS)
def test_whatever_a_strange_server_behind_a_watching_proxy_gets_is_on_record(
    tmp_path: Path, splitter: str, reader: str
) -> None:
    """It does find the call, many times, and each of them stands in the ledger."""
    found = bought(tmp_path, splitter, reader)

    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db", create=False) as relay:
        recorded = [tool for tool, _ in calls_in(relay)].count("mcp__shop__buy")
        relay.verify()
    assert 10 < found <= recorded
