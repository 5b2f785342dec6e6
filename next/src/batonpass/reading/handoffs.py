"""Runs, handoffs and trees as people look at them: what became of each call, attempt and child, and who asked for it.

Terminal, page and `--json` only lay these values out. Field names are those of the JSON, and times are UTC. What is in
doubt comes from the fold by which a retry decides, so nothing is shown that will not be asked.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.bodies import (
    Body,
    HandoffAccepted,
    HandoffEnded,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolDenied,
    ToolEnded,
    ToolFailed,
    ToolLateResult,
    ToolRequested,
    ToolSettled,
    public_kind,
)
from batonpass.model.grants import Held
from batonpass.model.items import AnyItem, Report
from batonpass.model.lifecycle import RunState, State
from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow, StreamRow
from batonpass.model.values import Mode, Outcome, Settlement
from batonpass.reading.batons import get_handoff, get_receipt, principal_of, read_baton, read_hops, read_lineage
from batonpass.reading.history import (
    History,
    attempts_at,
    find_text,
    fold,
    read_hunks,
    read_part,
    read_report,
    settlements,
)
from batonpass.store.port import Store

CallOutcome: TypeAlias = Literal["completed", "failed", "denied"]

# Of a receipt's contents only these are words: the others are data (arguments, hunks) or secret.
_WORDS: Final = ("intent", "task", "action", "target", "reason", "error")


class Shown(Struct, frozen=True, kw_only=True):
    """A value that is shown. A text that is None was erased."""


class ReceiptView(Shown, frozen=True):
    """One receipt with its words."""

    id: str
    kind: str
    stream: str
    seq: int
    at: datetime
    mode: Mode
    body: Body
    words: dict[str, str | None]


class EffectView(Shown, frozen=True):
    """What a call changed in one file. Without counts it was no text, or too large to compare."""

    target: str | None
    before: str | None
    after: str | None
    added: int | None = None
    removed: int | None = None


class CallView(Shown, frozen=True):
    """A call, and what became of it. Without an outcome nobody knows whether it was made."""

    id: str
    run: str
    seq: int  # where the request, or the denial, stands in the stream of its run
    key: str  # the same each time it is tried
    tool: str
    action: str | None
    target: str | None
    arguments: str | None  # JSON
    requested_at: datetime
    outcome: CallOutcome | None = None
    ended_at: datetime | None = None
    took_us: int | None = None
    has_result: bool = False  # a later attempt is given it instead of a second call
    is_in_doubt: bool = False  # a person decides: repeat or skip
    settlement: Settlement | None = None
    settled_by: str | None = None
    repeated_as: str | None = None
    late: Outcome | None = None  # delivered after its attempt was over: evidence only
    rule: str | None = None
    reason: str | None = None
    error: str | None = None
    effects: tuple[EffectView, ...] = ()


class HandoffLine(Shown, frozen=True):
    """A handoff in a list."""

    id: str
    to: str
    task: str | None
    state: State
    attempt: int
    parent: str
    root: str
    run: str | None
    seq: int  # where the offer stands in the stream of the parent
    offered_at: datetime


class RunLine(Shown, frozen=True):
    """A run in a list."""

    id: str
    agent: str
    state: RunState
    attempt: int
    task: str | None
    root: str
    parent: str | None
    handoff: str | None
    receipts: int
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None


class RunView(RunLine, frozen=True):
    """A run with everything that it did."""

    mode: Mode
    kept: int = 0  # calls that earlier attempts finished, given again instead of made
    calls: tuple[CallView, ...] = ()
    children: tuple[HandoffLine, ...] = ()
    report: Report | None = None
    error: str | None = None


class Hop(Shown, frozen=True):
    """An agent on the way from the person down to a handoff."""

    run: str
    agent: str


class GrantView(Shown, frozen=True):
    """What one hop holds. `account` is what a revocation names."""

    account: str
    agent: str
    may: tuple[str, ...]
    may_delegate: tuple[str, ...]
    expires_at: datetime | None
    is_revoked: bool


class HandoffView(HandoffLine, frozen=True):
    """A handoff with its attempts, and how it came to be."""

    principal: str
    intent: str | None  # what the person said
    chain: tuple[Hop, ...]  # from the root to the agent that gives it
    mode: Mode
    criteria: tuple[str, ...]
    items: dict[str, int]  # how many of each kind travel with it
    grants: tuple[GrantView, ...]  # from where the grant began to this handoff; empty: no grant
    attempts: tuple[RunView, ...]
    in_doubt: tuple[CallView, ...]
    kept: tuple[CallView, ...]  # finished by attempts so far: the next one is given their results
    acts: tuple[ReceiptView, ...]  # what was decided about it from outside
    report: Report | None  # of the last attempt that ended
    error: str | None


class TreeView(Shown, frozen=True):
    """All runs of a task, the root first, in the order in which they began."""

    principal: str
    intent: str | None
    runs: tuple[RunView, ...]


class RunPage(Shown, frozen=True):
    """Runs, the latest first, and the cursor of the next page."""

    items: tuple[RunLine, ...]
    next: str | None


def read_run_page(
    store: Store, *, state: str | None = None, agent: str | None = None, after: str | None = None, limit: int = 50
) -> RunPage:
    """Return a page of runs. `after` is what the page before has as `next`. Raises `InvalidValueError`."""
    try:
        before = urlsafe_b64decode(after).decode() if after else None
    except ValueError:
        raise InvalidValueError(f"{after!r} is not a cursor of this list: take the `next` of a page") from None
    rows = store.list_runs(state=state, agent=agent, before=before, limit=limit + 1)
    items = tuple(_read_run_line(store, row) for row in rows[:limit])
    more = len(rows) > limit
    return RunPage(items=items, next=urlsafe_b64encode(items[-1].id.encode()).decode() if more else None)


def read_run_view(store: Store, row: StreamRow) -> RunView:
    """Return a run with everything that it did."""
    if row.handoff is None:
        return _read_root(store, row, get_receipt(store, row.id, 1))
    offered = get_handoff(store, row.handoff)
    task = find_text(get_receipt(store, offered.parent, offered.seq), "task")
    attempts, _ = _read_attempts(store, offered, task, store.receipts(offered.id))
    return next(run for run in attempts if run.id == row.id)


def _read_run_line(store: Store, row: StreamRow) -> RunLine:
    """Return a run as a list shows it."""
    first = get_receipt(store, row.id, 1)
    body = first.body
    if isinstance(body, HandoffAccepted):
        offer = get_receipt(store, body.parent, get_handoff(store, body.handoff).seq)
        return _run_line(row, find_text(offer, "task"), body.parent)
    return _run_line(row, find_text(first, "intent"), None)


def read_handoff_line(store: Store, handoff: str) -> HandoffLine:
    """Return a handoff as a list shows it. Raises `NotFoundError`."""
    row = get_handoff(store, handoff)
    return _handoff_line(row, get_receipt(store, row.parent, row.seq))


def read_handoff(store: Store, handoff: str) -> HandoffView:
    """Return a handoff with all of its attempts. Raises `NotFoundError`."""
    row = get_handoff(store, handoff)
    offer = get_receipt(store, row.parent, row.seq)
    hops = read_hops(store, row.parent)
    baton = read_baton(store, hops, offer)
    acts = store.receipts(handoff)
    attempts, history = _read_attempts(store, row, find_text(offer, "task"), acts)
    calls = [call for attempt in attempts for call in attempt.calls]
    ended = [attempt for attempt in attempts if attempt.report is not None or attempt.error is not None]
    lineage = read_lineage(hops, offer)
    line = _handoff_line(row, offer)
    return HandoffView(
        **{name: getattr(line, name) for name in line.__struct_fields__},
        principal=principal_of(hops),
        intent=find_text(hops[0].first, "intent"),
        chain=tuple(Hop(run=hop.run, agent=hop.agent) for hop in hops),
        mode="enforced" if lineage else "observed",
        criteria=baton.criteria,
        items=_count_items(baton.items),
        grants=tuple(_grant_view(store, held) for held in lineage),
        attempts=attempts,
        in_doubt=tuple(call for call in calls if call.is_in_doubt),
        kept=_kept_calls(calls, history),
        acts=tuple(_view_receipt(signed) for signed in acts if not isinstance(signed.body, ToolLateResult)),
        report=ended[-1].report if ended else None,
        error=ended[-1].error if ended else None,
    )


def read_tree(store: Store, root: str) -> TreeView:
    """Return everything that was done for one start. Raises `NotFoundError`."""
    row = store.find_stream(root)
    first = None if row is None else get_receipt(store, root, 1)
    if row is None or first is None or not isinstance(first.body, RunStarted):
        raise NotFoundError(f"there is no root run {root} in this ledger: `batonpass run list` shows what there is")
    runs: list[RunView] = []
    queue = [_read_root(store, row, first)]
    # Attempts of a handoff follow each other, and come after the run that offered it, however clocks disagree.
    while queue:
        run = queue.pop()
        runs.append(run)
        below: list[RunView] = []
        for child in run.children:
            below += _read_attempts(store, get_handoff(store, child.id), child.task, store.receipts(child.id))[0]
        queue += reversed(below)
    return TreeView(principal=first.body.principal, intent=find_text(first, "intent"), runs=tuple(runs))


def _view_receipt(signed: Signed) -> ReceiptView:
    """Return a receipt with its words."""
    receipt = signed.receipt
    return ReceiptView(
        id=receipt.id,
        kind=public_kind(receipt.kind, signed.body),
        stream=signed.stream,
        seq=receipt.seq,
        at=as_moment(receipt.at),
        mode=receipt.mode,
        body=signed.body,
        words={part: find_text(signed, part) for part in _WORDS if part in receipt.content},
    )


def _read_root(store: Store, row: StreamRow, first: Signed) -> RunView:
    receipts = store.receipts(row.id)
    history = History()
    fold(history, receipts, settlements(receipts))
    run = _read_run(store, row, receipts, find_text(first, "intent"), None)
    (run,) = _judge([run], history, _settled(receipts), {}, is_over=run.state == RunState.COMPLETED)
    return run


def _read_attempts(
    store: Store, row: HandoffRow, task: str | None, acts: Sequence[Signed]
) -> tuple[tuple[RunView, ...], History]:
    """Return the attempts at a handoff, the first one first, and their fold."""
    settled, history = settlements(acts), History()
    attempts: list[RunView] = []
    for run in attempts_at(row, acts):
        stream = store.find_stream(run)
        if stream is None:
            raise NotFoundError(f"there is no run {run} in this ledger, though {row.id} names it")
        receipts = store.receipts(run)
        kept = len(history.finished)
        fold(history, receipts, settled)
        attempts.append(replace(_read_run(store, stream, receipts, task, row.parent), kept=kept))
    late = {act.body.call: act.body.outcome for act in acts if isinstance(act.body, ToolLateResult)}
    return _judge(attempts, history, _settled(acts), late, is_over=row.state == State.COMPLETED), history


def _judge(
    runs: Sequence[RunView],
    history: History,
    settled: Mapping[str, ToolSettled],
    late: Mapping[str, Outcome],
    *,
    is_over: bool,
) -> tuple[RunView, ...]:
    """Return runs whose calls say what was decided about them, and what waits for a decision."""
    doubtful = {call.call for call in history.in_doubt.values()}
    # A call that returned what cannot be given again is asked about only if there may be another attempt.
    later = _later_calls(call for run in runs for call in run.calls)

    def judge(call: CallView) -> CallView:
        decision = settled.get(call.id)
        return replace(
            call,
            is_in_doubt=call.id in doubtful and not (is_over and call.outcome == "completed"),
            settlement=None if decision is None else decision.settlement,
            settled_by=None if decision is None else decision.by,
            repeated_as=later.get(call.id) if call.outcome is None else None,
            late=late.get(call.id),
        )

    return tuple(replace(run, calls=tuple(map(judge, run.calls))) for run in runs)


def _later_calls(calls: Iterable[CallView]) -> dict[str, str]:
    """Return the next try of each call that was tried again."""
    tries: dict[str, list[str]] = {}
    for call in calls:
        if call.outcome != "denied":
            tries.setdefault(call.key, []).append(call.id)
    return {first: second for ids in tries.values() for first, second in pairwise(ids)}


def _read_calls(receipts: Iterable[Signed]) -> tuple[CallView, ...]:
    """Return the calls of a run, in the order in which they were asked for."""
    calls: dict[str, CallView] = {}
    for signed in receipts:
        body = signed.body
        if isinstance(body, ToolRequested | ToolDenied):
            calls[body.call] = CallView(
                id=body.call,
                run=signed.stream,
                seq=signed.receipt.seq,
                key=body.key,
                tool=body.tool,
                action=find_text(signed, "action"),
                target=find_text(signed, "target"),
                arguments=find_text(signed, "arguments"),
                requested_at=as_moment(signed.receipt.at),
                outcome="denied" if isinstance(body, ToolDenied) else None,
                rule=body.rule if isinstance(body, ToolDenied) else None,
                reason=find_text(signed, "reason"),
            )
        elif isinstance(body, ToolEnded) and body.call in calls:
            call = calls[body.call]
            calls[body.call] = replace(
                call,
                outcome="failed" if isinstance(body, ToolFailed) else "completed",
                ended_at=as_moment(signed.receipt.at),
                took_us=body.took_us,
                has_result=isinstance(body, ToolCompleted) and read_part(signed, "result") is not None,
                error=find_text(signed, "error"),
                effects=_effects(signed, body, call.target),
            )
    return tuple(calls.values())


def _effects(signed: Signed, body: ToolEnded, target: str | None) -> tuple[EffectView, ...]:
    hunks = read_hunks(signed)
    return tuple(
        EffectView(
            target=target,
            before=effect.before,
            after=effect.after,
            added=None if hunks is None else sum(len(hunk.added) for hunk in hunks),
            removed=None if hunks is None else sum(hunk.removed for hunk in hunks),
        )
        for effect in body.effects
    )


def _read_run(
    store: Store, row: StreamRow, receipts: Sequence[Signed], task: str | None, parent: str | None
) -> RunView:
    children = tuple(
        _handoff_line(get_handoff(store, signed.body.handoff), signed)
        for signed in receipts
        if isinstance(signed.body, HandoffInitiated)
    )
    last = receipts[-1]
    has_ended = isinstance(last.body, HandoffEnded | RunClosed)  # else it is open, or was fenced
    line = _run_line(row, task, parent)
    return RunView(
        **{name: getattr(line, name) for name in line.__struct_fields__},
        mode=receipts[0].receipt.mode,
        calls=_read_calls(receipts),
        children=children,
        report=read_report(last),
        error=find_text(last, "error") if has_ended else None,
    )


def _kept_calls(calls: Iterable[CallView], history: History) -> tuple[CallView, ...]:
    """Return the calls whose results a next attempt is given; of equal ones the first."""
    kept = {call.key: call for call in reversed(list(calls)) if call.has_result and call.settlement is None}
    return tuple(call for call in reversed(kept.values()) if call.key in history.finished)


def _settled(receipts: Iterable[Signed]) -> dict[str, ToolSettled]:
    return {signed.body.call: signed.body for signed in receipts if isinstance(signed.body, ToolSettled)}


def _grant_view(store: Store, held: Held) -> GrantView:
    expires_at = held.terms.expires_at
    return GrantView(
        account=held.account,
        agent=held.agent,
        may=held.terms.may,
        may_delegate=held.terms.may_delegate,
        expires_at=None if expires_at is None else as_moment(expires_at),
        is_revoked=store.is_revoked(held.account),
    )


def _handoff_line(row: HandoffRow, offer: Signed) -> HandoffLine:
    return HandoffLine(
        id=row.id,
        to=row.to,
        task=find_text(offer, "task"),
        state=State(row.state),
        attempt=row.attempt,
        parent=row.parent,
        root=row.root,
        run=row.run,
        seq=row.seq,
        offered_at=as_moment(row.offered_at),
    )


def _run_line(row: StreamRow, task: str | None, parent: str | None) -> RunLine:
    return RunLine(
        id=row.id,
        agent=row.agent or "",
        state=RunState(row.state),
        attempt=row.attempt or 1,
        task=task,
        root=row.root or row.id,
        parent=parent,
        handoff=row.handoff,
        receipts=row.seq,
        started_at=as_moment(row.started_at),
        last_at=as_moment(row.last_at),
        ended_at=None if row.state == RunState.OPEN else as_moment(row.last_at),
    )


def _count_items(items: Iterable[AnyItem]) -> dict[str, int]:
    return dict(Counter(str(type(item).__struct_config__.tag) for item in items))


def as_moment(at: int) -> datetime:
    """Return a time of a receipt as it is shown."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).replace(microsecond=at % 1_000_000)
