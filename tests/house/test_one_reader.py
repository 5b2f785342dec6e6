"""One reader: receipts about calls are interpreted in `records`, and everybody else selects and renders."""

import ast

from tests.house.tree import PACKAGE, nodes, parsed

BODIES = frozenset({"ToolCached", "ToolCompleted", "ToolDenied", "ToolFailed", "ToolHeld", "ToolRequested"})
# Who tells of what is recorded, and so may not read a receipt of a call itself.
TELLERS = ("accounts", "adapters", "agents", "aio", "cli", "demo", "dispatch", "policy", "server")
# It makes receipts of transcripts, and so names what it makes.
IMPORTER = "src/batonpass/adapters/importer/session_drafts.py"


def test_nobody_but_records_interprets_a_receipt_of_a_call() -> None:
    """A second reader is where the next wrong answer comes from."""
    found = [
        f"{name}: {alias.name}"
        for name, tree in parsed(*(PACKAGE / teller for teller in TELLERS))
        if name != IMPORTER
        for node in nodes(tree, ast.ImportFrom)
        if (node.module or "").startswith("batonpass.model")
        for alias in node.names
        if alias.name in BODIES
    ]

    assert [] == found
