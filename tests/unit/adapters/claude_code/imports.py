"""Importing a history into a ledger, and looking at what is there then."""

import json
from datetime import datetime
from typing import Any

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.importer.session_import import Imported, Progress, import_sessions
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.adapters.claude_code.histories import History


def bring(
    relay: Relay, history: History, *, since: datetime | None = None, progress: Progress | None = None
) -> Imported:
    return import_sessions(
        relay, history.project, ClaudeCodeSessions(history.config), by="user:ana", since=since, progress=progress
    )


def receipts(relay: Relay, kind: str | None = None) -> list[Receipt]:
    with relay.store.view() as view:
        found = view.find_receipts(ReceiptQuery(kind=kind))
        return [decode_receipt(one.payload) for one in found if not one.kind.startswith("relay.")]


def words(relay: Relay, receipt: Receipt, name: str) -> str:
    return relay.read(receipt.content[name].id).decode()


def sources(relay: Relay, kind: str | None = None) -> list[dict[str, Any]]:
    return [json.loads(words(relay, receipt, "source")) for receipt in receipts(relay, kind)]


def runs(relay: Relay) -> list[Run]:
    with relay.store.view() as view:
        return list(view.find_runs())[::-1]


def a_session(history: History) -> None:
    """Write a session with a prompt, an edit, a sub-agent and a last word."""
    history.says("Fix it")
    path = str(history.project / "a.py")
    history.uses("c1", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"})
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}
    history.returns("c1", "done", toolUseResult={"filePath": path, "originalFile": "a\n", "structuredPatch": [hunk]})
    history.uses("c2", "Agent", {"prompt": "Test it", "subagent_type": "tester"})
    history.says("Test it", history.agent("a1"))
    history.uses("c3", "Bash", {"command": "pytest"}, history.agent("a1"))
    history.returns("c3", "1 failed", history.agent("a1"), ok=False)
    history.answers("It fails", history.agent("a1"))
    history.returns("c2", "It fails", toolUseResult={"agentId": "a1", "status": "completed"})
    history.answers("Fixed")
