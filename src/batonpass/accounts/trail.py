"""The trail: a whole tree as it happened, read in one pass."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from batonpass.accounts.sources import run_between, timed
from batonpass.accounts.trail_values import Called, HandoffTold, Happened, Noted, RunTold, Trail
from batonpass.accounts.trail_words import INTENT, ITEM, MESSAGE, TARGET, Words, first_line, gone, is_told
from batonpass.audit.lookup import Found, read_receipt
from batonpass.handoff.calls.past_calls import ARGUMENTS
from batonpass.handoff.transfer.holds import find_decision
from batonpass.handoff.transfer.read_offer import BRIEF, TASK
from batonpass.model.bodies import (
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    HandoffLate,
    HandoffSettled,
    Part,
    RunRecorded,
    RunRelaxed,
    RunSettled,
    Settlement,
    ToolApproved,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRefused,
    ToolRequested,
)
from batonpass.model.content import Place
from batonpass.model.ids import CallId, ContentId, Digest, HandoffId, RunId
from batonpass.model.receipt import Receipt
from batonpass.model.run import Handoff, Run, RunState
from batonpass.model.taint import is_made_of_outside
from batonpass.store.port import LedgerView, ReceiptQuery

_CHUNK: Final = 500

Streams: TypeAlias = Mapping[str, Sequence[tuple[int, Receipt]]]  # each with its place in the order of writing


def read_trail(view: LedgerView, run: RunId) -> Trail:
    """Return the whole tree that a run belongs to, as it happened. Raises `NotFoundError`."""
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
    # By their first receipt: the order in which things were written is the same for all clocks.
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
            items=tuple(Noted(part=part, words=self._words[item]) for item, part in _items_of(receipt)),
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
    """Read what is told, in chunks; of each text only its first line is kept."""
    wanted = dict(_find_wanted(receipts))
    read: dict[ContentId, Words] = {}
    contents = tuple(wanted)
    for start in range(0, len(contents), _CHUNK):
        for content in view.find_contents(contents[start : start + _CHUNK]):
            if content.body is not None:
                read[content.id] = first_line(wanted[content.id], content.id, content.body)
            elif content.place is Place.ERASED:
                read[content.id] = gone(content.id, Found.ERASED)
    return {content: read.get(content) or gone(content, Found.MISSING) for content in contents}


def _find_wanted(receipts: Iterable[Receipt]) -> Iterator[tuple[ContentId, str]]:
    for receipt in receipts:
        # What a tool was called with is told only if it does not say what it changes.
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
        match receipt.body:
            case ToolRequested() | ToolDenied() | ToolHeld() as body:
                events.append(calls[body.call])
            case ToolCompleted() | ToolFailed() as body if body.call in calls:
                continue  # told with its request
            case _:
                events.append(lines.happened(receipt))
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
        mode=offer.mode,
        offered=lines.happened(offer),
        task=lines.find(offer, TASK),
        may=may if may is not None and may.bare else None,
        story=tuple(told for _, told in story),
    )


def _tell_calls(view: LedgerView, runs: Sequence[Run], streams: Streams, lines: _Lines) -> dict[CallId, Called]:
    """Return every call of a tree with what became of it, wherever that stands."""
    after = _Aftermath()
    for stream in streams.values():
        for _, receipt in stream:
            after.take(receipt)
    calls: dict[CallId, Called] = {}
    for run in runs:
        epoch = streams[run.id][-1][1].epoch if run.state is RunState.OPEN else None
        for _, receipt in streams[run.id]:
            if isinstance(receipt.body, ToolRequested):
                # In a process that is lost, as in a run that is over, nobody waits for an outcome any more.
                over = epoch is None or receipt.epoch < epoch
                calls[receipt.body.call] = _tell_call(receipt, receipt.body, lines, after, over=over)
            elif isinstance(receipt.body, ToolDenied | ToolHeld):
                calls[receipt.body.call] = _tell_denied(view, receipt, receipt.body, lines)
    _mark_kept(runs, streams, calls)
    return calls


class _Aftermath:
    """What became of calls: their outcomes, what came late, and what somebody decided."""

    def __init__(self) -> None:
        self.outcomes: dict[CallId, tuple[Receipt, ToolCompleted | ToolFailed]] = {}
        self.settled: dict[CallId, Settlement] = {}
        self.late: dict[CallId, bool] = {}
        self.answered: dict[Digest, CallId] = {}
        self._keys: dict[CallId, Digest] = {}

    def take(self, receipt: Receipt) -> None:
        match receipt.body:
            case ToolRequested() as body if body.key is not None:
                self._keys[body.call] = body.key
            case ToolCompleted() | ToolFailed() as body:
                self.outcomes[body.call] = receipt, body
                if isinstance(body, ToolCompleted) and body.call in self._keys:
                    self.answered[self._keys[body.call]] = body.call
            case HandoffSettled() | RunSettled() as body:
                self.settled[body.call] = body.settlement
            case HandoffLate() as body:
                self.late[body.call] = body.completed
            case _:
                return


def _tell_call(receipt: Receipt, body: ToolRequested, lines: _Lines, after: _Aftermath, *, over: bool) -> Called:
    ended, outcome = after.outcomes.get(body.call, (None, None))
    done = outcome if isinstance(outcome, ToolCompleted) else None
    failed = outcome if isinstance(outcome, ToolFailed) else None
    settled = after.settled.get(body.call)
    again = after.answered.get(body.key) if body.key is not None and outcome is None else None
    return Called(
        receipt=receipt.id,
        at=receipt.at,
        id=body.call,
        run=body.run,
        tool=body.tool,
        outcome="completed" if done is not None else "failed" if failed is not None else None,
        ended_at=None if ended is None else ended.at,
        why=None if failed is None else failed.error,
        target=lines.find(receipt, TARGET),
        arguments=lines.find(receipt, ARGUMENTS),
        message=lines.find(ended, MESSAGE) if failed is not None and ended is not None else None,
        flags=body.flags if outcome is None else (*body.flags, *outcome.flags),
        reads=body.reads,
        reversible=body.reversible,
        external=ended is not None and is_made_of_outside(ended),
        cost=0 if done is None else done.cost,
        changed=0 if outcome is None else len(outcome.changes),
        effects=() if outcome is None else tuple(effect.kind for effect in outcome.effects),
        exit_code=None if outcome is None else outcome.exit_code,
        took_us=None if outcome is None else outcome.took_us,
        in_doubt=over and outcome is None and settled is None and again is None and not body.reads,
        settled=settled,
        late=after.late.get(body.call),
        again=again,
    )


def _tell_denied(view: LedgerView, receipt: Receipt, body: ToolDenied | ToolHeld, lines: _Lines) -> Called:
    decided = find_decision(view, body.call) if isinstance(body, ToolHeld) else None
    return Called(
        receipt=receipt.id,
        at=receipt.at,
        id=body.call,
        run=body.run,
        tool=body.tool,
        outcome="denied" if isinstance(body, ToolDenied) else "held",
        ended_at=receipt.at,
        why=body.rule,
        target=lines.find(receipt, TARGET),
        arguments=lines.find(receipt, ARGUMENTS),
        decided=None if decided is None else _decided(decided[1]),
    )


def _decided(body: ToolApproved | ToolRefused) -> str:
    proof = "proven" if body.proven else "unproven"
    return f"{'approved' if isinstance(body, ToolApproved) else 'refused'} by {body.by} ({proof})"


def _mark_kept(runs: Sequence[Run], streams: Streams, calls: dict[CallId, Called]) -> None:
    """Mark calls that a later attempt did not make again. It says only how many: all that there were, or unknown."""
    finished: dict[HandoffId, list[CallId]] = defaultdict(list)
    made: dict[RunId, list[CallId]] = defaultdict(list)
    for call in calls.values():
        if call.outcome == "completed" or call.settled is Settlement.SKIP:
            made[call.run].append(call.id)
    for run in runs:
        if run.handoff is None:
            continue
        past = finished[run.handoff]
        last = streams[run.id][-1][1].body
        if isinstance(last, HandoffCompleted | HandoffFailed) and 0 < last.kept == len(past):
            for known in past:
                if calls[known].kept_by is None:
                    calls[known] = replace(calls[known], kept_by=run.id)
        past += made[run.id]
