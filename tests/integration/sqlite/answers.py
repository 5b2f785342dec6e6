"""Everything that a ledger answers, to compare two of them."""

import msgspec
from msgspec.structs import replace

from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import RunState
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.store.sqlite.store import SqliteStore


def everything_in(store: SqliteStore) -> dict[str, list[object]]:
    """Return what a ledger answers to whoever asks for all of it, or for each thing by its name."""
    with store.view() as view:
        return {**_receipts(view), **_runs(view), "counts": [replace(view.counts(), bytes=0)]}


def _receipts(view: LedgerView) -> dict[str, list[object]]:
    receipts = list(view.find_receipts(ReceiptQuery()))
    calls = list(view.find_call_receipts(""))
    moments = [run.started_at for run in view.find_runs()]
    contents = list(view.find_content_ids())
    streams = sorted(view.find_streams(), key=lambda stream: stream.id)
    return {
        "receipts": [*receipts],
        "by id": [view.get_receipt(receipt.id) for receipt in receipts],
        "by place": [view.get_receipt_at(receipt.stream, receipt.seq) for receipt in receipts],
        "by ending": [list(view.find_ids("receipt", receipt.id[-6:])) for receipt in receipts],
        "ids": [*view.find_ids("receipt", "")],
        "since": [list(view.find_receipts(ReceiptQuery(since=moment))) for moment in moments],
        "of calls": [*calls],
        "of each call": [list(view.find_call_receipts(_call_of(receipt))) for receipt in calls],
        "open requests": [*sorted(view.find_open_requests(runs=99, of_each=99, most=999), key=lambda one: one.id)],
        "contents": [view.get_content(content) for content in contents],
        "contents together": [*sorted(view.find_contents(contents), key=lambda content: content.id)],
        "streams": [*streams],
        "of streams": [list(view.find_receipts(ReceiptQuery(stream=stream.id))) for stream in streams],
    }


def _call_of(receipt: StoredReceipt) -> str:
    call: str = msgspec.json.decode(receipt.payload)["predicate"]["body"]["call"]
    return call


def _runs(view: LedgerView) -> dict[str, list[object]]:
    runs = list(view.find_runs())
    roots = list(view.find_runs(roots=True))
    handoffs = list(view.find_handoffs())
    agents = sorted({run.agent for run in runs})
    return {
        "runs": [*runs],
        "roots": [*roots],
        "runs in states": list(view.find_runs(states=tuple(RunState))),
        "runs of agents": [list(view.find_runs(agent=agent)) for agent in agents],
        "receipts of agents": [list(view.find_receipts(ReceiptQuery(agent=agent))) for agent in agents],
        "runs of trees": [list(view.find_runs(root=run.id)) for run in roots],
        "receipts of trees": [list(view.find_receipts(ReceiptQuery(root=run.id))) for run in roots],
        "children": [list(view.find_runs(parent=run.id)) for run in runs],
        "series": [list(view.find_runs(series=run.series)) for run in runs if run.series],
        "sessions": [list(view.find_runs(session=run.session)) for run in runs if run.session],
        "roots of sessions": [list(view.find_runs(session=run.session, roots=True)) for run in runs if run.session],
        "session ids": list(view.find_ids("session", "")),
        "runs by ending": [list(view.find_ids("run", run.id[-6:])) for run in runs],
        "handoffs": [*handoffs],
        "attempts": [list(view.find_attempts(handoff)) for handoff in handoffs],
        "handoffs in states": list(view.find_handoffs(states=tuple(State))),
        "handoffs of trees": [list(view.find_handoffs(root=run.id)) for run in roots],
        "handoffs of runs": [list(view.find_handoffs(parent=run.id)) for run in runs],
        "handoffs to agents": [list(view.find_handoffs(to=agent)) for agent in agents],
        "handoffs by ending": [list(view.find_ids("handoff", handoff.id[-6:])) for handoff in handoffs],
        "offers": [view.get_offer(known.scope, known.key) for known in handoffs if known.scope and known.key],
        "held": list(view.find_held()),
        "overdue": list(view.find_overdue()),
    }
