"""One tree of runs, read once, as all kinds of finding look at it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final

from msgspec import Struct

from batonpass.attribution.changes.change_document import decode_change
from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import BRIEF, INTENT, REPORT, TARGET, TASK, TERMS, UNTOUCHED, USE
from batonpass.model.base.ids import AgentId, CallId, ContentId, HandoffId, PrincipalId, RunId
from batonpass.model.base.kinds import Carried
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.items import ItemValue, Report
from batonpass.model.bodies.body import HandoffCompleted, HandoffFailed, HandoffInitiated, RunClosed
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.grant import terms_from
from batonpass.records.handoff import Judged, ResultVerdict
from batonpass.records.hold import HoldRecord, find_call_hold, find_handoff_holds
from batonpass.records.source import timed
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.review.earlier_grants import EarlierGrants
from batonpass.review.earlier_rulings import EarlierRulings
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_brief, decode_item, decode_report

# Read at once for the whole tree: nearly every kind of finding asks for one of them.
_WANTED: Final = frozenset({BRIEF, INTENT, REPORT, TARGET, TASK, TERMS, UNTOUCHED, USE})
_TELLING: Final = 8  # characters of an id in a command: longer than on screen, because it is pasted later


class Closing(Struct, frozen=True):
    """The receipt that ended a run, with its body."""

    receipt: Receipt
    body: HandoffCompleted | HandoffFailed | RunClosed

    @property
    def delivered(self) -> bool:
        """Return whether the run says that it did its work."""
        return isinstance(self.body, HandoffCompleted)


class EarlierTrees:
    """The past of the trees of a review, read once for all of them."""

    def __init__(self, view: LedgerView) -> None:
        self.grants = EarlierGrants(view)
        self.rulings = EarlierRulings(view)


class ReviewedTree:
    """A tree with all of its receipts, and the words behind them as far as somebody asks for them."""

    def __init__(self, view: LedgerView, root: RunId, earlier: EarlierTrees | None = None) -> None:
        found = timed(view, [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(root=root))])
        self.view = view
        self.earlier = earlier or EarlierTrees(view)
        self.root = root
        self.mark = found.mark  # set if a part of it was imported, and so is unsigned
        self.receipts = found.receipts
        self.streams: Mapping[str, tuple[Receipt, ...]] = _by_stream(found.receipts)
        # A row that no receipt supports is left out: verification reports it.
        # All of them in the order in which their first receipt was written, which depends on no clock.
        known = {run.id: run for run in view.find_runs(root=root)}
        self.runs: Mapping[RunId, Run] = {
            RunId(stream): known[RunId(stream)] for stream in self.streams if stream in known
        }
        self.offers: Mapping[HandoffId, tuple[Receipt, HandoffInitiated]] = {
            receipt.body.handoff: (receipt, receipt.body)
            for receipt in found.receipts
            if isinstance(receipt.body, HandoffInitiated)
        }
        rows = {handoff.id: handoff for handoff in view.find_handoffs(root=root)}
        self.handoffs: Mapping[HandoffId, Handoff] = {known: rows[known] for known in self.offers if known in rows}
        self.calls: Mapping[CallId, CallRecord] = find_calls(found.receipts, self.runs.values())
        self._bodies: dict[ContentId, bytes | None] = {}
        self._briefs: dict[HandoffId, Brief] = {}
        self._terms: dict[HandoffId, Terms | None] = {}
        self._reports: dict[RunId, Report | None] = {}
        self._items: dict[ContentId, tuple[ItemValue, PrincipalId]] = {}
        self._read(ref.id for receipt in found.receipts for name, ref in receipt.content.items() if name in _WANTED)

    def opening(self, run: RunId) -> Receipt:
        """Return the first receipt of a run."""
        return self.streams[run][0]

    def closing(self, run: RunId) -> Closing | None:
        """Return how a run ended by itself; None if it is open, or others ended it."""
        last = self.streams[run][-1]
        # A refused offer is recorded as a failed handoff with attempt 0; it closes nothing.
        if isinstance(last.body, RunClosed | HandoffCompleted) or (
            isinstance(last.body, HandoffFailed) and last.body.attempt
        ):
            return Closing(last, last.body)
        return None

    @cached_property
    def refusals(self) -> tuple[tuple[Receipt, HandoffFailed], ...]:
        """Return the offers that were refused, so that nothing came of them."""
        return tuple(
            (receipt, receipt.body)
            for receipt in self.receipts
            if isinstance(receipt.body, HandoffFailed) and receipt.body.is_refusal
        )

    def acts(self, handoff: HandoffId) -> tuple[Receipt, ...]:
        """Return the receipts of a handoff that others than its own runs wrote."""
        return self.streams.get(handoff, ())

    @cached_property
    def attempts(self) -> Mapping[HandoffId, tuple[Run, ...]]:
        """Return the runs of each handoff, the first attempt first."""
        found: dict[HandoffId, list[Run]] = defaultdict(list)
        for run in self.runs.values():
            if run.handoff is not None:
                found[run.handoff].append(run)
        return {handoff: tuple(sorted(runs, key=lambda run: run.attempt)) for handoff, runs in found.items()}

    @cached_property
    def calls_of(self) -> Mapping[RunId, tuple[CallRecord, ...]]:
        """Return the calls of each run, in the order of their requests."""
        found: dict[RunId, list[CallRecord]] = defaultdict(list)
        for call in self.calls.values():
            found[call.run].append(call)
        return {run: tuple(sorted(calls, key=lambda call: call.receipt.seq)) for run, calls in found.items()}

    @cached_property
    def children(self) -> Mapping[RunId, tuple[Handoff, ...]]:
        """Return the handoffs that each run made, in order."""
        found: dict[RunId, list[Handoff]] = defaultdict(list)
        for handoff in self.handoffs.values():
            found[handoff.parent].append(handoff)
        return {run: tuple(sorted(made, key=lambda one: one.seq)) for run, made in found.items()}

    @cached_property
    def holds(self) -> tuple[HoldRecord, ...]:
        """Return everything that waited for somebody, with the rulings on it."""
        held = [handoff for handoff in self.handoffs.values() if self._was_held(handoff)]
        found = [hold for handoff in held for hold in find_handoff_holds(self.view, handoff)]
        known = {hold.hold.call for hold in found}
        staying = [call.id for call in self.calls.values() if call.takes_people and call.id not in known]
        return (*found, *(hold for call in staying if (hold := find_call_hold(self.view, call)) is not None))

    def _was_held(self, handoff: Handoff) -> bool:
        if self.offers[handoff.id][1].state is State.HELD:
            return True
        return any(receipt.kind.startswith("handoff.held") for receipt in self.acts(handoff.id))

    def verdicts(self, handoff: HandoffId, attempt: int) -> tuple[ResultVerdict, ...]:
        """Return the verdicts on the result of one attempt."""
        return tuple(
            ResultVerdict(receipt=receipt, body=receipt.body)
            for receipt in self.acts(handoff)
            if isinstance(receipt.body, Judged) and receipt.body.attempt == attempt
        )

    def found(
        self,
        kind: FindingKind,
        subject: Run | Handoff | CallRecord,
        sentence: str,
        receipts: Iterable[Receipt],
        *,
        severity: Severity | None = None,
        calls: Iterable[CallRecord] = (),
        details: tuple[str, ...] = (),
        go_on: tuple[str, ...] = (),
        person: PrincipalId | None = None,
        by: RunId | None = None,
    ) -> Finding:
        """Return a finding about a run, a handoff or a call of this tree; `by` is who handed it off, if that did it."""
        evidence = tuple(receipts)
        return Finding(
            kind=kind,
            severity=severity or kind.severity,
            root=self.root,
            subject=subject.id,
            agent=self._agent(subject) if by is None else self.runs[by].agent,
            at=min(receipt.at for receipt in evidence),
            sentence=sentence,
            receipts=tuple(dict.fromkeys(receipt.id for receipt in evidence)),
            go_on=go_on or _usual(subject),
            calls=tuple(call.id for call in calls),
            details=details,
            person=person,
            by=by,
        )

    def _agent(self, subject: Run | Handoff | CallRecord) -> AgentId:
        match subject:
            case Run():
                return subject.agent
            case Handoff():
                return self.worker(subject)
            case _:
                return self.runs[subject.run].agent

    def worker(self, handoff: Handoff) -> AgentId:
        """Return who worked on a handoff last: somebody else than its first agent, once it was given to another."""
        run = None if handoff.run is None else self.runs.get(handoff.run)
        return handoff.to if run is None else run.agent

    def work(self, run: RunId) -> Run | Handoff:
        """Return the thing that people ask about if a run did something: its handoff, or the root."""
        known = self.runs[run]
        return known if known.handoff is None else self.handoffs.get(known.handoff, known)

    def lineage(self, run: RunId) -> Iterator[Run]:
        """Yield a run, and every run above it up to the root."""
        seen: set[RunId] = set()
        at: RunId | None = run
        while at is not None and at in self.runs and at not in seen:
            seen.add(at)
            yield self.runs[at]
            at = self.runs[at].parent

    # What was said.

    def task(self, handoff: HandoffId) -> str:
        """Return the task of a handoff; empty once it was erased."""
        return self.words(self.offers[handoff][0], TASK)

    def brief(self, handoff: HandoffId) -> Brief:
        """Return the brief of a handoff, as far as it can be read."""
        if handoff not in self._briefs:
            self._briefs[handoff] = self._read_brief(handoff)
        return self._briefs[handoff]

    def _read_brief(self, handoff: HandoffId) -> Brief:
        body = self.body(self.offers[handoff][0], BRIEF)
        try:
            return Brief() if body is None else decode_brief(body)
        except InvalidValueError:
            return Brief()

    def terms(self, handoff: HandoffId) -> Terms | None:
        """Return the terms of a handoff; None if it has none, or they can no longer be read."""
        if handoff not in self._terms:
            self._terms[handoff] = terms_from(self.body(self.offers[handoff][0], TERMS))
        return self._terms[handoff]

    def report(self, run: RunId) -> Report | None:
        """Return the report of a run; None if there is none, or it is gone."""
        if run not in self._reports:
            self._reports[run] = self._read_report(run)
        return self._reports[run]

    def _read_report(self, run: RunId) -> Report | None:
        body = self.body(self.streams[run][-1], REPORT)
        try:
            return None if body is None else decode_report(body)
        except InvalidValueError:
            return Report(result=body.decode(errors="replace")) if body is not None else None

    def items(self, refs: Iterable[Carried]) -> Mapping[ContentId, tuple[ItemValue, PrincipalId]]:
        """Return items with their authors, all read at once; those that are gone are left out."""
        wanted = [ref.item for ref in refs]
        self._read(one for one in wanted if one not in self._items)
        for one in wanted:
            body = None if one in self._items else self._bodies.get(one)
            if body is not None:
                with suppress(InvalidValueError):
                    self._items[one] = decode_item(body)[:2]
        return {one: self._items[one] for one in wanted if one in self._items}

    def changed_files(self, calls: Iterable[CallRecord]) -> tuple[str | None, ...]:
        """Return the files that calls changed, each once however often; None for each change whose words are gone."""
        changes = [(call, changed.change) for call in calls for changed in call.changes]
        self._read(change for _, change in changes)
        paths = [self._path(call, change) for call, change in changes]
        return (*dict.fromkeys(path for path in paths if path is not None), *[None] * paths.count(None))

    def _path(self, call: CallRecord, change: ContentId) -> str | None:
        body = self._bodies.get(change)
        try:
            return None if body is None else decode_change(body, call=call.id, run=call.run, at=call.at).path
        except InvalidValueError:
            return None

    def words(self, receipt: Receipt, name: str) -> str:
        """Return a content as text; empty if there is none or it is gone."""
        body = self.body(receipt, name)
        return "" if body is None else body.decode(errors="replace")

    def body(self, receipt: Receipt, name: str) -> bytes | None:
        """Return the bytes of a content; None if there is none or it is gone."""
        ref = receipt.content.get(name)
        if ref is None:
            return None
        if ref.id not in self._bodies:
            self._read([ref.id])
        return self._bodies.get(ref.id)

    def read_ahead(self, receipts: Iterable[Receipt], name: str) -> None:
        """Read one content of many receipts at once."""
        self._read(receipt.content[name].id for receipt in receipts if name in receipt.content)

    def _read(self, contents: Iterable[ContentId]) -> None:
        wanted = tuple(dict.fromkeys(one for one in contents if one not in self._bodies))
        self._bodies |= dict.fromkeys(wanted)
        self._bodies |= {stored.id: stored.body for stored in find_in_chunks(self.view, wanted)}


def _usual(subject: Run | Handoff | CallRecord) -> tuple[str, ...]:
    """Return the command that shows more about something."""
    noun = "run show" if isinstance(subject, Run) else "handoff show" if isinstance(subject, Handoff) else "why"
    return (f"batonpass {noun} {ending(subject.id, _TELLING)}",)


def _by_stream(receipts: Iterable[Receipt]) -> dict[str, tuple[Receipt, ...]]:
    streams: dict[str, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        streams[receipt.stream].append(receipt)
    return {stream: tuple(sorted(found, key=lambda receipt: receipt.seq)) for stream, found in streams.items()}
