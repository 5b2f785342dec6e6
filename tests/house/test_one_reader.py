"""One reader: receipts about calls are interpreted in `records`, and everybody else selects and renders."""

import ast

from tests.house.tree import ROOT

BODIES = frozenset({"ToolCached", "ToolCompleted", "ToolDenied", "ToolFailed", "ToolHeld", "ToolRequested"})
# Who tells of what is recorded, and so may not read a receipt of a call itself.
TELLERS = ("accounts", "adapters", "agents", "aio", "cli", "demo", "dispatch", "policy", "server")
# It makes receipts of transcripts, and so names what it makes.
IMPORTER = "adapters/importer/session_drafts.py"


def test_nobody_but_records_interprets_a_receipt_of_a_call() -> None:
    """A second reader is where the next wrong answer comes from."""
    source = ROOT / "src" / "batonpass"
    found = [
        f"{path.relative_to(source).as_posix()}: {alias.name}"
        for teller in TELLERS
        for path in sorted((source / teller).rglob("*.py"))
        if path.relative_to(source).as_posix() != IMPORTER
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("batonpass.model")
        for alias in node.names
        if alias.name in BODIES
    ]

    assert [] == found
