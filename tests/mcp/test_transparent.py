"""A client sees the same with the proxy and without it."""

import json
from pathlib import Path

import anyio
import pytest

from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from tests.mcp.everything import Observer, observe, steadied
from tests.mcp.ledgers import calls_in
from tests.mcp.servers import node_server, proxied

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observer, Observer, Path]:
    """Do everything twice, and return what was seen directly, through the proxy, and where that is recorded."""
    directory = tmp_path_factory.mktemp("everything")
    command = node_server("everything")
    direct = anyio.run(observe, command, directory)
    through = anyio.run(observe, proxied(command, "--name", "everything"), directory)
    return direct, through, directory


def test_everything_is_the_same_through_the_proxy(seen: tuple[Observer, Observer, Path]) -> None:
    """Tools, resources, prompts, progress, sampling, elicitation, roots, logging, failures and giving up."""
    direct, through, _ = seen

    assert json.loads(steadied(json.dumps(direct.seen))) == json.loads(steadied(json.dumps(through.seen)))
    assert sorted(set(direct.heard)) == sorted(set(through.heard))


def test_all_of_it_was_done(seen: tuple[Observer, Observer, Path]) -> None:
    """The server did ask for a model, for a person and for the roots, and did tell how far it was."""
    direct, _, _ = seen
    what = dict(direct.seen)

    assert ("2025-11-25", [1, 2], True, True, True) == (
        what["version"],
        [step[0] for step in what["progress"]],
        "sampling" in what,
        "elicitation" in what,
        what["given up"],
    )


def test_every_call_is_on_record(seen: tuple[Observer, Observer, Path]) -> None:
    """Each of them with its outcome; the one that was given up is in doubt."""
    _, _, directory = seen
    with Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db", create=False) as relay:
        calls = calls_in(relay)
        relay.verify()
        with relay.store.view() as view:
            runs = [(run.agent, run.principal, run.state) for run in view.find_runs()]

    assert [("observer", "user:ana", RunState.COMPLETED)] == runs
    outcomes = {name: outcome for name, outcome in calls if not name.endswith("long-running-operation")}
    assert {
        "mcp__everything__echo": "completed",
        "mcp__everything__get-sum": "failed",
        "mcp__everything__no-such-tool": "failed",
        "mcp-prompt__everything": "failed",
        "mcp-resource__everything": "failed",
    }.items() <= outcomes.items()
    assert ["completed", None] == [outcome for name, outcome in calls if name.endswith("long-running-operation")]
