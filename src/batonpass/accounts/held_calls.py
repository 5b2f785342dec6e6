"""The calls of open runs that wait for an approval."""

from datetime import datetime

from msgspec import Struct

from batonpass.audit.meant_ids import find_waiting_calls
from batonpass.model.base.content_names import TARGET
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord, call_asked
from batonpass.records.json_shapes import exact
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView


class WaitingCall(Struct, frozen=True, kw_only=True):
    """A call that waits for an approval while its run is open."""

    held: CallRecord
    run: Run
    at: datetime
    target: str | None


def read_waiting_calls(view: LedgerView, root: RunId | None = None) -> list[WaitingCall]:
    """Return the waiting calls of open runs, the latest first."""
    found = []
    for waiting in find_waiting_calls(view, root=root):
        held = call_asked(read_receipt(view.get_receipt(waiting.receipt)))
        if held is not None:
            target = read_texts(view, held.receipt).get(TARGET)
            words = None if target is None else target.first_line
            found.append(WaitingCall(held=held, run=view.get_run(waiting.run), at=held.at, target=words))
    return found


def waiting_facts(each: WaitingCall) -> dict[str, object]:
    """Return a waiting call for programs."""
    held = each.held
    return {
        "call": held.id,
        "run": held.run,
        "agent": each.run.agent,
        "state": "held",
        "tool": held.tool,
        "target": each.target,
        "rule": held.rule,
        "gate": held.gate,
        "proven": held.takes_proof,
        "approvals": held.takes_people,
        "at": exact(each.at),
    }
