"""The real program's transcripts in a ledger: by the library, and by the command that people run."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.adapters.importer.session_import import import_sessions
from batonpass.model.base.ids import RunId
from batonpass.model.bodies.body import Kind, ToolCompleted
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.claude_code.story import AFTER, CHANGES, DEEPER, FIX, HALF_EVEN, NEGATIVE, NOTES, OTHERWISE, SLOWLY, Played
from tests.integration.cli.shell import batonpass_in

pytestmark = pytest.mark.slow

ALL = ImportCounts(found=2, sessions=2, prompts=5, subagents=4, calls=20, changes=7, receipts=58)


@pytest.fixture
def relay(played: Played) -> Iterator[Relay]:
    """Return a relay that has imported the story."""
    with Relay.open("memory:") as relay:
        import_sessions(relay, played.project, ClaudeCodeSessions(played.config))
        yield relay


def receipts(relay: Relay, kind: str) -> list[Receipt]:
    with relay.store.view() as view:
        return [decode_receipt(one.payload) for one in view.find_receipts(ReceiptQuery(kind=kind))]


def words(relay: Relay, receipt: Receipt, name: str) -> str:
    return relay.read(receipt.content[name].id).decode()


def test_all_of_the_story_is_recorded_once(played: Played) -> None:
    """The second time adds nothing, and the ledger verifies."""
    with Relay.open("memory:") as relay:
        first = import_sessions(relay, played.project, ClaudeCodeSessions(played.config))
        second = import_sessions(relay, played.project, ClaudeCodeSessions(played.config))
        evidence = relay.verify()

    assert (ALL, ()) == (first.counts, first.problems)
    assert ImportCounts(found=2) == second.counts
    assert (ALL.receipts, 4) == (evidence.receipts - 1, evidence.handoffs)


def test_the_human_is_whoever_commits(relay: Relay) -> None:
    """Their words are statements, in the order in which they said them."""
    with relay.store.view() as view:
        stated = list(view.find_statements())

    assert [FIX, NEGATIVE, CHANGES, AFTER, OTHERWISE] == [relay.read(one.item).decode() for one in stated]
    assert {"user:ana@example.org"} == {one.by for one in stated}


def test_every_sub_agent_is_a_handoff_with_its_exact_task(relay: Relay) -> None:
    """Parallel, nested and in the background; each says how sure its link is."""
    offers = receipts(relay, Kind.HANDOFF_INITIATED)
    agents = {run.id: run.agent for run in all_runs(relay)}

    assert {
        HALF_EVEN: "claude-code",
        NOTES: "claude-code",
        SLOWLY: "claude-code",
        DEEPER: "editor",
    } == {words(relay, offer, "task"): agents[RunId(offer.stream)] for offer in offers}
    assert {"meta"} == {json.loads(words(relay, offer, "source"))["link"] for offer in offers}
    assert 4 == len(receipts(relay, Kind.HANDOFF_COMPLETED))


def all_runs(relay: Relay) -> list[Run]:
    with relay.store.view() as view:
        return list(view.find_runs())


def test_what_was_written_has_the_digest_of_the_file(relay: Relay, played: Played) -> None:
    """A sub-agent's file, whose transcript keeps no more than what was asked for."""
    with relay.store.view() as view:
        (touched,) = view.find_touches("office.md")
        body = decode_receipt(view.get_receipt(touched.receipt).payload).body

    assert isinstance(body, ToolCompleted)
    assert [hashlib.sha256((played.project / "office.md").read_bytes()).hexdigest()] == [
        changed.after for changed in body.changes
    ]


def test_a_fork_continues_its_original(relay: Relay) -> None:
    """Only what is its own stands under it."""
    first, second = (receipt.body for receipt in receipts(relay, Kind.RUN_STARTED))

    assert getattr(first, "run", None) == getattr(second, "continues", None)


def test_the_command_imports_what_is_there(copied: Played) -> None:
    """With nothing set up: one command in the project, and the ledger is whole."""
    ours = {"HOME": str(copied.home), "BATONPASS_LEDGER": str(copied.home / "ledger.db")}
    first = batonpass_in(copied.project, "import", "claude-code", environment=ours)
    second = batonpass_in(copied.project, "import", "claude-code", environment=ours)
    verified = batonpass_in(copied.project, "ledger", "verify", environment=ours)

    assert [
        "imported 2 sessions of 2: 5 prompts, 4 sub-agents, 20 calls, 7 changes to files\n",
        "nothing new in 2 sessions\n",
    ] == [done_well(first), done_well(second)]
    assert 0 == verified.returncode, verified.stderr


def done_well(done: subprocess.CompletedProcess[str]) -> str:
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.postgres
def test_a_database_holds_the_story_as_well(played: Played, postgres_url: str, tmp_path: Path) -> None:
    """Many receipts in one commit, files found by their paths, and all of it whole."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        imported = import_sessions(relay, played.project, ClaudeCodeSessions(played.config))
        again = import_sessions(relay, played.project, ClaudeCodeSessions(played.config))
        relay.verify()

    assert (ALL, 0) == (imported.counts, again.counts.receipts)
