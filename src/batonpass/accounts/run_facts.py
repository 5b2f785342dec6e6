"""A run for programs: its task, its calls, its children, its report, and every run above it."""

from collections.abc import Sequence

from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import read_calls
from batonpass.records.json_shapes import Shape, call_shape, run_shape, text_shape
from batonpass.records.lineage import Tasks, find_ancestors
from batonpass.records.text import Text, read_texts
from batonpass.store.port import LedgerView


def run_facts(view: LedgerView, run: Run, receipts: Sequence[Receipt], mark: str | None) -> Shape:
    """Return everything that the ledger knows about a run."""
    tasks = Tasks(view)
    report = find_report(view, receipts).get("report")
    return {
        **run_shape(run, tasks.find(run)),
        "imported": mark,
        "mode": receipts[0].mode if receipts else None,
        "session": receipts[0].session if receipts else None,
        "epoch": receipts[-1].epoch if receipts else None,
        "receipts": [receipt.id for receipt in receipts],
        "ancestors": [run_shape(ancestor, tasks.find(ancestor)) for ancestor in find_ancestors(view, run)],
        "children": [run_shape(child, tasks.find(child)) for child in find_children(view, run)],
        "calls": [call_shape(call) for call in read_calls(view, run, receipts).values()],
        "report": text_shape(report),
    }


def find_children(view: LedgerView, run: Run) -> list[Run]:
    """Return the runs that a run handed off to, oldest first."""
    return sorted(view.find_runs(parent=run.id), key=lambda child: child.id)


def find_report(view: LedgerView, receipts: Sequence[Receipt]) -> dict[str, Text]:
    """Return the report of a run."""
    if not receipts:
        return {}
    return {name: text for name, text in read_texts(view, receipts[-1]).items() if name == "report"}
