"""The trail of a tree, read in one pass."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from batonpass.accounts.trail.first_lines import Words, first_line, is_told, proven
from batonpass.accounts.trail.trail_values import Called, HandoffTold, Happened, NotedItem, RunTold, Trail
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.content_names import ARGUMENTS, BRIEF, INTENT, ITEM, MESSAGE, TARGET, TASK
from batonpass.model.base.ids import CallId, ContentId, HandoffId, RunId
from batonpass.model.bodies.body import (
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    Part,
    RunRecorded,
    RunRelaxed,
    Settlement,
)
from batonpass.model.ledger.content import Place
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import is_approval
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallOutcome, CallRecord, call_of, find_calls
from batonpass.records.hold import find_decision
from batonpass.records.source import run_between, timed
from batonpass.records.text import Found, find_in_chunks, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

Streams: TypeAlias = Mapping[str, Sequence[tuple[int, Receipt]]]  # each with its number in the order of writing


def read_trail(view: LedgerView, run: RunId) -> Trail:
    """Return the whole tree that a run belongs to. Raises `NotFoundError`."""
    # A trail is whole if it has every receipt with this root. Rows only say which runs and handoffs there are: those
    # that no receipt supports are left out here, and verification reports them.
    root = view.get_run(run).root
    found = timed(view, [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(root=root))])
    receipts = found.receipts
    lines = _Lines(_read_lines(view, receipts))
    streams: dict[str, list[tuple[int, Receipt]]] = defaultdict(list)
    offers: dict[HandoffId, Receipt] = {}
    for number, receipt in enumerate(receipts):
        streams[receipt.stream].append((number, receipt))
        if isinstance(receipt.body, HandoffInitiated):
            offers[receipt.body.handoff] = receipt
    # By their first receipt: the order of writing does not depend on clocks.
    runs = [
        run_between(known, streams[known.id][0][1], streams[known.id][-1][1])
        for known in view.find_runs(root=root)
        if known.id in streams
    ]
    runs.sort(key=lambda known: streams[known.id][0][0])
    calls = _tell_calls(view, runs, streams, lines)
    attempts: dict[HandoffId | None, list[tuple[int, RunId]]] = defaultdict(list)
    for known in runs:
        attempts[known.handoff].append((streams[known.id][0][0], known.id))
    handoffs = sorted((known for known in view.find_handoffs(root=root) if known.id in offers), key=lambda one: one.id)
    return Trail(
        root=root,
        top=root,
        receipts=len(receipts),
        mark=found.mark,
        runs={known.id: _tell_run(known, streams[known.id], offers, lines, calls) for known in runs},
        handoffs={
            known.id: _tell_handoff(known, offers[known.id], streams.get(known.id, ()), attempts[known.id], lines)
            for known in handoffs
        },
    )


class _Lines:
    """The first lines of a tree, by content."""

    def __init__(self, words: Mapping[ContentId, Words]) -> None:
        self._words = words

    def find(self, receipt: Receipt, name: str) -> Words | None:
        return self._words.get(receipt.content[name].id) if name in receipt.content else None

    def happened(self, receipt: Receipt) -> Happened:
        words = {name: self._words[ref.id] for name, ref in receipt.content.items() if ref.id in self._words}
        words = {name: line for name, line in words.items() if is_told(name)}
        if isinstance(receipt.body, RunRelaxed):
            words[ITEM] = self._words[receipt.body.item]
        return Happened(
            receipt=receipt.id,
            at=receipt.at,
            body=receipt.body,
            words=words,
            items=tuple(NotedItem(part=part, words=self._words[item]) for item, part in _items_of(receipt)),
        )


def _items_of(receipt: Receipt) -> Iterator[tuple[ContentId, Part]]:
    """Yield the items that a receipt introduces."""
    match receipt.body:
        case RunRecorded() as body:
            yield from ((item.item, item.part) for item in body.items)
        case HandoffInitiated() as body:
            said = {ref.id for name, ref in receipt.content.items() if not is_told(name)}
            yield from ((item.item, item.part) for item in body.carries if said and item.item in said)
        case _:
            return


def _read_lines(view: LedgerView, receipts: Iterable[Receipt]) -> dict[ContentId, Words]:
    """Read the contents that are shown, in chunks, and keep only their first lines."""
    wanted = dict(_find_wanted(receipts))
    read: dict[ContentId, Words] = {}
    for content in find_in_chunks(view, tuple(wanted)):
        if content.body is not None:
            read[content.id] = first_line(wanted[content.id], content.id, content.body)
        elif content.place is Place.ERASED:
            read[content.id] = Words(content=content.id, found=Found.ERASED)
    return {content: read.get(content) or Words(content=content, found=Found.MISSING) for content in wanted}


def _find_wanted(receipts: Iterable[Receipt]) -> Iterator[tuple[ContentId, str]]:
    for receipt in receipts:
        # Arguments are shown only if the call has no target.
        silent = TARGET not in receipt.content
        for name, ref in receipt.content.items():
            if is_told(name) and (silent or name != ARGUMENTS):
                yield ref.id, name
        yield from ((item, INTENT if part is Part.INTENT else ITEM) for item, part in _items_of(receipt))
        if isinstance(receipt.body, RunRelaxed):
            yield receipt.body.item, ITEM


def _tell_run(
    run: Run,
    stream: Sequence[tuple[int, Receipt]],
    offers: Mapping[HandoffId, Receipt],
    lines: _Lines,
    calls: Mapping[CallId, Called],
) -> RunTold:
    receipts = sorted((receipt for _, receipt in stream), key=lambda receipt: receipt.seq)
    events: list[Happened | Called] = []
    for receipt in receipts:
        call = call_of(receipt)
        if call is None or call not in calls:
            events.append(lines.happened(receipt))
        elif calls[call].receipt == receipt.id:
            events.append(calls[call])  # its outcome is shown with it
    opening = offers.get(run.handoff) if run.handoff is not None else receipts[0]
    return RunTold(
        run=run,
        mode=receipts[0].mode,
        epoch=receipts[-1].epoch,
        task=None if opening is None else lines.find(opening, INTENT if run.handoff is None else TASK),
        receipts=len(receipts),
        events=tuple(events),
    )


def _tell_handoff(
    handoff: Handoff,
    offer: Receipt,
    stream: Sequence[tuple[int, Receipt]],
    attempts: Sequence[tuple[int, RunId]],
    lines: _Lines,
) -> HandoffTold:
    acts = [(number, lines.happened(receipt)) for number, receipt in stream]
    story: list[tuple[int, Happened | RunId]] = sorted([*acts, *attempts], key=lambda told: told[0])
    may = lines.find(offer, BRIEF)
    return HandoffTold(
        handoff=handoff,
        mode=mode_of_child(offer),
        offered=lines.happened(offer),
        task=lines.find(offer, TASK),
        may=may if may is not None and may.bare else None,
        story=tuple(told for _, told in story),
    )


def _tell_calls(view: LedgerView, runs: Sequence[Run], streams: Streams, lines: _Lines) -> dict[CallId, Called]:
    """Return all calls of a tree with their outcomes, wherever those are recorded."""
    receipts = (receipt for stream in streams.values() for _, receipt in stream)
    calls = {record.id: _tell_call(view, record, lines) for record in find_calls(receipts, runs).values()}
    _mark_kept(runs, streams, calls)
    return calls


def _tell_call(view: LedgerView, record: CallRecord, lines: _Lines) -> Called:
    failed = record.ending if record.outcome is CallOutcome.FAILED else None
    return Called(
        record=record,
        target=lines.find(record.receipt, TARGET),
        arguments=lines.find(record.receipt, ARGUMENTS),
        message=None if failed is None else lines.find(failed, MESSAGE),
        decided=_decided(view, record.id) if record.outcome is CallOutcome.HELD else None,
    )


def _decided(view: LedgerView, call: CallId) -> str | None:
    found = find_decision(view, call)
    if found is None:
        return None
    decided = found[1]
    return f"{'approved' if is_approval(decided) else 'refused'} by {decided.by} ({proven(decided)})"


def _mark_kept(runs: Sequence[Run], streams: Streams, calls: dict[CallId, Called]) -> None:
    """Mark the calls that a later attempt kept."""
    finished: dict[HandoffId, list[CallId]] = defaultdict(list)
    made: dict[RunId, list[CallId]] = defaultdict(list)
    for call in calls.values():
        if call.record.outcome is CallOutcome.COMPLETED or call.record.settlement in {Settlement.SKIP, Settlement.LATE}:
            made[call.record.run].append(call.record.id)
    for run in runs:
        if run.handoff is None:
            continue
        past = finished[run.handoff]
        last = streams[run.id][-1][1].body
        if isinstance(last, HandoffCompleted | HandoffFailed):
            # Older relays recorded only how many calls they kept. If that is not all of them, we cannot tell which.
            kept = last.keeps or (past if last.kept == len(past) else ())
            for known in kept:
                if known in calls and calls[known].kept_by is None:
                    calls[known] = replace(calls[known], kept_by=run.id)
        past += made[run.id]
