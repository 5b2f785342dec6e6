"""The runs of one task at a glance: every handoff with its attempts, the reason why it waits, and who checked it.

It reads the rows of the tree and a few kinds of receipts. So a tree of five hundred runs is told at once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.accounts.overview.open_needs import NeedKind, OpenNeed, find_needs
from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import AgentId, ContentId, HandoffId, PrincipalId, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    HandoffReplaced,
)
from batonpass.model.ledger.content import ContentRef, Place
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.handoff import ResultVerdict, Standing, attempt_state, judged_in
from batonpass.records.lineage import Tasks
from batonpass.records.source import run_between, timed
from batonpass.records.text import Found, Text, find_in_chunks, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_DOUBT: Final = "in doubt"


class OutlinedAttempt(Struct, frozen=True, kw_only=True):
    """One run at a handoff."""

    run: Run
    kept: int = 0  # calls of earlier attempts whose results it uses
    problems: tuple[str, ...] = ()  # that were found when it accepted the baton
    is_tainted: bool = False  # it read something from outside, or was given it
    error: str | None = None  # the code, if it failed


class OutlinedHandoff(Struct, frozen=True, kw_only=True):
    """One handoff of a tree."""

    handoff: Handoff
    offered_at: datetime
    task: Text | None
    attempts: tuple[OutlinedAttempt, ...]
    needs: tuple[OpenNeed, ...]
    verdict: ResultVerdict | None  # the one that decides whether its result stands
    is_tainted: bool  # it carries something from outside
    replaced: tuple[tuple[AgentId, PrincipalId], ...] = ()  # agents that it was given to instead, and by whom

    @property
    def state(self) -> str:
        """Return its state as people look for it: in doubt comes before how the attempt ended."""
        if any(need.kind is NeedKind.DOUBT for need in self.needs):
            return _DOUBT
        return str(self.handoff.state)

    def state_of(self, attempt: OutlinedAttempt) -> str:
        """Return how one of its attempts stands."""
        return attempt_state(self.handoff, attempt.run)

    @property
    def agent(self) -> AgentId:
        """Return who works on it."""
        return self.handoff.to

    @property
    def last(self) -> OutlinedAttempt | None:
        """Return the latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def took_from(self) -> datetime:
        """Return when work on it began; when it was offered if nobody began."""
        return self.attempts[0].run.started_at if self.attempts else self.offered_at

    @property
    def ended_at(self) -> datetime | None:
        """Return when its latest attempt ended."""
        return None if self.last is None else self.last.run.ended_at


class TreeOutline(Struct, frozen=True, kw_only=True):
    """All runs and handoffs of one root."""

    root: Run
    intent: Text | None
    mark: str | None  # set if it was imported
    runs: Mapping[RunId, Run]
    handoffs: Mapping[HandoffId, OutlinedHandoff]  # in the order in which they were offered
    below: Mapping[RunId, tuple[OutlinedHandoff, ...]]  # by the run that offered them
    root_needs: tuple[OpenNeed, ...]  # of the root run itself

    def children(self, handoff: OutlinedHandoff) -> tuple[OutlinedHandoff, ...]:
        """Return the handoffs that the attempts at a handoff made, in that order."""
        return tuple(child for attempt in handoff.attempts for child in self.below.get(attempt.run.id, ()))

    @property
    def needs(self) -> list[OpenNeed]:
        """Return everything that needs a person, the oldest first."""
        found = [*self.root_needs, *(need for one in self.handoffs.values() for need in one.needs)]
        return sorted(found, key=lambda need: need.since)

    @property
    def states(self) -> list[tuple[str, str]]:
        """Return the state of each attempt by its run, in the order in which they began; a handoff without one too."""
        found: list[tuple[datetime, str, str]] = [(self.root.started_at, self.root.id, str(self.root.state))]
        for one in self.handoffs.values():
            if not one.attempts:
                found.append((one.offered_at, one.handoff.id, one.state))
            for attempt in one.attempts:
                is_last = attempt is one.attempts[-1]
                found.append((attempt.run.started_at, attempt.run.id, one.state if is_last else str(attempt.run.state)))
        return [(identifier, state) for _, identifier, state in sorted(found)]

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many runs are in each state."""
        return Counter(state for _, state in self.states)

    @property
    def tainted(self) -> int:
        """Return how many handoffs read or carry something from outside."""
        return sum(one.is_tainted or any(each.is_tainted for each in one.attempts) for one in self.handoffs.values())


def read_outline(view: LedgerView, root: RunId) -> TreeOutline:
    """Return the outline of a tree. Raises `NotFoundError`."""
    top = view.get_run(root)
    said = _Said(view, root)
    runs = {run.id: said.timed(run) for run in view.find_runs(root=root)}
    attempts: dict[HandoffId, list[Run]] = defaultdict(list)
    for run in runs.values():
        if run.handoff is not None:
            attempts[run.handoff].append(run)
    needs: dict[str, list[OpenNeed]] = defaultdict(list)
    for need in find_needs(view, root):
        needs[need.handoff or need.run].append(need)
    rows = sorted((row for row in view.find_handoffs(root=root) if row.id in said.offers), key=lambda row: row.id)
    told = [
        said.handoff(row, sorted(attempts[row.id], key=lambda run: run.attempt), tuple(needs[row.id])) for row in rows
    ]
    below: dict[RunId, list[OutlinedHandoff]] = defaultdict(list)
    for one in told:
        below[one.handoff.parent].append(one)
    return TreeOutline(
        root=runs.get(root, top),
        intent=Tasks(view).find(top),
        mark=said.mark,
        runs=runs,
        handoffs={one.handoff.id: one for one in told},
        below={run: tuple(found) for run, found in below.items()},
        root_needs=tuple(needs[root]),
    )


class _Said:
    """The facts from a few kinds of receipts of a tree."""

    def __init__(self, view: LedgerView, root: RunId) -> None:
        opening = read_receipt(view.get_receipt_at(StreamId(root), 1))
        self.mark = timed(view, [opening]).mark
        self._first: dict[RunId, Receipt] = {root: opening}
        self.offers: dict[HandoffId, tuple[Receipt, HandoffInitiated]] = {}
        self._accepted: dict[RunId, HandoffAccepted] = {}
        self._closed: dict[RunId, tuple[Receipt, HandoffCompleted | HandoffFailed]] = {}
        self._replaced: dict[HandoffId, list[HandoffReplaced]] = defaultdict(list)
        self._verdicts: dict[HandoffId, list[ResultVerdict]] = defaultdict(list)
        for receipt in _find(view, root):
            self._take(receipt)
        self._tasks = dict(_read_tasks(view, [receipt for receipt, _ in self.offers.values()]))

    def _take(self, receipt: Receipt) -> None:
        match receipt.body:
            case HandoffInitiated() as body:
                self.offers[body.handoff] = receipt, body
            case HandoffAccepted() as body:
                self._accepted[body.run] = body
                self._first[body.run] = receipt
            case HandoffCompleted() | HandoffFailed() as body if body.attempt:
                self._closed[body.run] = receipt, body
            case HandoffReplaced() as body:
                self._replaced[HandoffId(receipt.stream)].append(body)
            case _:
                if (verdict := judged_in(receipt)) is not None:
                    self._verdicts[HandoffId(receipt.stream)].append(verdict)

    def timed(self, run: Run) -> Run:
        """Return a run with the times of the imported session."""
        first = self._first.get(run.id)
        if self.mark is None or first is None:
            return run
        return run_between(run, first, self._closed[run.id][0] if run.id in self._closed else first)

    def handoff(self, row: Handoff, attempts: list[Run], needs: tuple[OpenNeed, ...]) -> OutlinedHandoff:
        receipt, offer = self.offers[row.id]
        verdicts = [one for one in self._verdicts[row.id] if one.body.attempt == row.attempt]
        telling = [one for one in verdicts if one.standing is not Standing.UNVERIFIED]
        return OutlinedHandoff(
            handoff=row,
            offered_at=receipt.at,
            task=self._tasks.get(row.id),
            attempts=tuple(map(self._attempt, attempts)),
            needs=needs,
            verdict=next(iter(telling or verdicts), None),
            is_tainted=bool(offer.taint),
            replaced=tuple((body.to, body.by) for body in self._replaced[row.id]),
        )

    def _attempt(self, run: Run) -> OutlinedAttempt:
        accepted, closed = self._accepted.get(run.id), self._closed.get(run.id)
        ended = None if closed is None else closed[1]
        return OutlinedAttempt(
            run=run,
            kept=0 if ended is None else ended.kept,
            problems=() if accepted is None else accepted.problems,
            is_tainted=bool(ended is not None and ended.taint),
            error=ended.error if isinstance(ended, HandoffFailed) else None,
        )


def _find(view: LedgerView, root: RunId) -> Iterator[Receipt]:
    kinds = (
        Kind.HANDOFF_INITIATED,
        Kind.HANDOFF_ACCEPTED,
        Kind.HANDOFF_COMPLETED,
        Kind.HANDOFF_FAILED,
        Kind.HANDOFF_REPLACED,
        "verification",
    )
    for kind in kinds:
        yield from map(read_receipt, view.find_receipts(ReceiptQuery(root=root, kind=kind)))


def _read_tasks(view: LedgerView, offers: list[Receipt]) -> Iterator[tuple[HandoffId, Text]]:
    refs: dict[ContentId, tuple[HandoffId, ContentRef]] = {
        receipt.content[TASK].id: (receipt.body.handoff, receipt.content[TASK])
        for receipt in offers
        if TASK in receipt.content and isinstance(receipt.body, HandoffInitiated)
    }
    seen: set[ContentId] = set()
    for content in find_in_chunks(view, tuple(refs)):
        handoff, ref = refs[content.id]
        seen.add(content.id)
        found = (
            Found.ERASED if content.place is Place.ERASED else Found.KEPT if content.body is not None else Found.MISSING
        )
        yield handoff, Text(name=TASK, ref=ref, found=found, body=content.body)
    for content_id, (handoff, ref) in refs.items():
        if content_id not in seen:
            yield handoff, Text(name=TASK, ref=ref, found=Found.MISSING, body=None)


def is_over(state: str) -> bool:
    """Return whether nothing happens any more in this state unless somebody decides so."""
    return state not in {
        State.HELD,
        State.OFFERED,
        State.READY,
        State.CLAIMED,
        State.ASKED,
        State.RUNNING,
        RunState.OPEN,
    }
