"""Blame for a whole run, and the ways from outside to anything that was asked about."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import Blame, RunWork
from batonpass.accounts.blame.makers import Makers
from batonpass.accounts.taint.taint_way import find_way
from batonpass.attribution.changes.change_document import read_file_changes
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import ending
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import HANDOFF, RUN, CallId, Digest, HandoffId, RunId, StreamId
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallOutcome, CallRecord, read_calls
from batonpass.records.grant import read_credential
from batonpass.records.hold import Leave, find_handoff_holds, find_leave
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView


def blame_run(view: LedgerView, given: str) -> Blame:
    """Return who worked in a run: task, human, grant and approvals; for a handoff, its latest attempt.

    Raises `NotFoundError`, also if nobody accepted the handoff, and `AmbiguousIdError`.
    """
    run = _run_of(view, given)
    stored = view.get_receipt_at(StreamId(run.id), 1)
    receipt = read_receipt(stored)
    maker = replace(Makers(view).of_receipt(stored, receipt, "worked"), work=_work(view, run))
    return Blame(asked=f"{run.agent} {ending(run.id)}", calls=(receipt.id,), makers={receipt.id: maker})


def with_ways(view: LedgerView, blame: Blame) -> Blame:
    """Return an answer with the shortest way of all content from outside to each call or run in it."""
    targets: dict[CallId | RunId, object] = {}
    for name, maker in blame.makers.items():
        targets[maker.call or maker.run.id] = name
    ways = {name: find_way(view, target) for target, name in targets.items()}
    return replace(blame, ways={name: ways.get(name, ()) for name in blame.makers})


def _run_of(view: LedgerView, given: str) -> Run:
    meant = get_meant(view, given, (RUN, HANDOFF))
    if meant.kind == RUN:
        return view.get_run(RunId(meant.id))
    handoff = view.get_handoff(HandoffId(meant.id))
    if handoff.run is None:
        raise NotFoundError("attempt at handoff", given)
    return view.get_run(handoff.run)


def _asked_about(view: LedgerView, run: Run, calls: Sequence[CallRecord]) -> Iterator[CallRecord]:
    """Yield the calls that needed, or would have needed, an approval; a run may have made thousands of others."""
    held = {call.key for call in calls if call.outcome is CallOutcome.HELD}
    if run.handoff is not None:
        held |= {record.key for record in find_handoff_holds(view, view.get_handoff(run.handoff))}
    for call in calls:
        would = any(what == "would_hold" for what, _ in call.would)
        if would or call.outcome is CallOutcome.HELD or (call.is_made and call.key is not None and call.key in held):
            yield call


def _work(view: LedgerView, run: Run) -> RunWork:
    calls = list(read_calls(view, run).values())
    outcomes = Counter("in doubt" if call.in_doubt else str(call.outcome or "open") for call in calls)
    files = Counter(change.path for call in calls for change in read_file_changes(view, call))
    first: dict[Digest, CallRecord] = {}
    acted: Counter[Digest] = Counter()
    for call in calls:
        if call.credential is not None:
            first.setdefault(call.credential, call)
            acted[call.credential] += 1
    credentials = [(read_credential(view, first[key]), count) for key, count in acted.items()]
    leaves = [(call, find_leave(view, call)) for call in _asked_about(view, run, calls)]
    return RunWork(
        outcomes=dict(outcomes),
        files=dict(files),
        credentials=tuple((one, count) for one, count in credentials if one is not None),
        leaves=tuple((call, leave) for call, leave in leaves if leave.leave is not Leave.NOT_NEEDED),
    )
