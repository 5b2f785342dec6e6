"""The checklist after a run, answered for the root and for each handoff: who, which task, which scope, what is left."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from batonpass.accounts.handoff.scope_used import scope_said
from batonpass.model.base.content_names import INTENT, TARGET, TERMS, USE
from batonpass.model.base.ids import AgentId, HandoffId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.records.grant import read_credential, terms_from
from batonpass.records.handoff import OPEN, Standing, standing_of
from batonpass.records.hold import HoldRecord
from batonpass.review.kinds.phrases import listed, times
from batonpass.review.reviewed_tree import ReviewedTree

_WOULD: Final = {
    "would_deny": "would be denied",
    "would_hold": "would be held",
    "would_ask": "would be asked about",
}


# A run that may still do something.
_GOES_ON: Final = frozenset({RunState.OPEN, RunState.SUSPENDED})


class ChecklistRow(Struct, frozen=True, kw_only=True):
    """The questions of the checklist, answered for one handoff, or for what the root run did itself."""

    handoff: HandoffId | None  # None: the root run
    run: RunId | None  # of the latest attempt; None if nobody began
    agent: AgentId
    state: State | RunState
    mode: Mode
    attempts: int
    task: str  # exactly as it was handed off, or wished for; empty once it was erased
    granted: tuple[str, ...] | None  # None: no grant of its own
    used: tuple[str, ...]  # the least permits that cover its calls; without a grant, its tools
    credentials: tuple[str, ...]
    decisions: tuple[str, ...]  # what a rule denied, held, or would have
    approvals: tuple[str, ...]
    effects: tuple[str, ...]
    open_ends: tuple[str, ...]

    @property
    def about(self) -> str:
        """Return the state, and whether it is the root that is told about."""
        return f"root · {self.state}" if self.handoff is None else str(self.state)


def find_rows(tree: ReviewedTree) -> Iterator[ChecklistRow]:
    """Yield the answers for the root run, then for each handoff of a tree, the first one first."""
    yield _root_row(tree, tree.runs[tree.root])
    for handoff in tree.handoffs.values():
        yield _row(tree, handoff)


def _root_row(tree: ReviewedTree, root: Run) -> ChecklistRow:
    opening = tree.opening(root.id)
    calls = tree.calls_of.get(root.id, ())
    has_grant = TERMS in opening.content
    terms = terms_from(tree.body(opening, TERMS)) if has_grant else None
    return ChecklistRow(
        handoff=None,
        run=root.id,
        agent=root.agent,
        state=root.state,
        mode=opening.mode,
        attempts=1,
        task=tree.words(opening, INTENT),
        granted=_granted(terms) if has_grant else None,
        used=_used(tree, (root,), calls),
        credentials=tuple(dict.fromkeys(_credentials(tree, calls))),
        decisions=(*_decisions(calls), *_refused(tree, (root,))),
        approvals=tuple(_approvals(hold for hold in tree.holds if hold.hold.run == root.id)),
        effects=tuple(_effects(tree, calls)),
        open_ends=tuple(_open_ends_of(root.state, calls)),
    )


def _row(tree: ReviewedTree, handoff: Handoff) -> ChecklistRow:
    offer, body = tree.offers[handoff.id]
    runs = tree.attempts.get(handoff.id, ())
    calls = [call for run in runs for call in tree.calls_of.get(run.id, ())]
    return ChecklistRow(
        handoff=handoff.id,
        run=runs[-1].id if runs else None,
        agent=runs[-1].agent if runs else handoff.to,
        state=handoff.state,
        mode=tree.opening(runs[-1].id).mode if runs else offer.mode,
        attempts=len(runs),
        task=tree.task(handoff.id),
        granted=None if body.terms is None else _granted(tree.terms(handoff.id)),
        used=_used(tree, runs, calls),
        credentials=tuple(dict.fromkeys(_credentials(tree, calls))),
        decisions=(*_decided_offer(body), *_decisions(calls), *_refused(tree, runs)),
        approvals=tuple(_approvals(hold for hold in tree.holds if _is_of(tree, hold, handoff))),
        effects=tuple(_effects(tree, calls)),
        open_ends=tuple(_open_ends(tree, handoff, calls)),
    )


def _granted(terms: Terms | None) -> tuple[str, ...]:
    return () if terms is None else terms.may.lines


def _used(tree: ReviewedTree, runs: Iterable[Run], calls: Iterable[CallRecord]) -> tuple[str, ...]:
    closings = [tree.closing(run.id) for run in runs]
    said = scope_said(tree.body(one.receipt, USE) for one in closings if one is not None)
    if said is not None:
        return (*said.least, *(f"{permit} (beyond its grant)" for permit in said.beyond))
    return tuple(dict.fromkeys(call.tool for call in calls if call.is_made))


def _credentials(tree: ReviewedTree, calls: Iterable[CallRecord]) -> Iterator[str]:
    for call in calls:
        if (used := read_credential(tree.view, call)) is not None:
            yield f"{used.name or 'erased'} as {used.identity or 'erased'}"


def _decisions(calls: Iterable[CallRecord]) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for call in calls:
        if call.outcome in {CallOutcome.DENIED, CallOutcome.HELD}:
            counted[f"{call.outcome} by {call.rule}"] += 1
        for what, rule in call.would:
            counted[f"{_WOULD.get(what, what)} by {rule}"] += 1
    yield from (f"{times(count, 'call')} {said}" for said, count in counted.items())


def _refused(tree: ReviewedTree, runs: Iterable[Run]) -> Iterator[str]:
    """Yield the offers of its own that were refused."""
    own = {run.id for run in runs}
    yield from (f"offer to {body.to} refused ({body.error})" for _, body in tree.refusals if body.run in own)


def _decided_offer(body: HandoffInitiated) -> Iterator[str]:
    """Yield the rule that held the handoff itself, and those that would have if it were enforced."""
    if body.state is State.HELD:
        yield f"held by {body.rule or 'its sender'}"
    for flag in body.flags:
        what, _, rule = flag.partition(".")
        # An offer that names no way to verify its result is nearly every offer that is only observed.
        if what in _WOULD and not rule.startswith("method."):
            yield f"{_WOULD[what]} by {rule}"


def _approvals(holds: Iterable[HoldRecord]) -> Iterator[str]:
    for hold in holds:
        for one in hold.approvals:
            proof = "proven" if one.is_proven else "unproven"
            yield f"{'approved' if one.is_for else 'denied'} by {one.by} ({proof})"
        if hold.is_open:
            yield "waits for somebody"


def _is_of(tree: ReviewedTree, hold: HoldRecord, handoff: Handoff) -> bool:
    run = hold.hold.run
    return hold.hold.handoff == handoff.id or (run is not None and tree.runs[run].handoff == handoff.id)


def _effects(tree: ReviewedTree, calls: Iterable[CallRecord]) -> Iterator[str]:
    made = [call for call in calls if call.is_made and not call.reads]
    for call in made:
        if not call.changes and (call.effects or call.target is not None):
            target = tree.words(call.receipt, TARGET)
            yield f"{call.tool} {target}".rstrip()
    files = tree.changed_files(made)
    known = [path for path in files if path is not None]
    if known:
        yield f"{times(len(known), 'file')} changed: {listed(known)}"
    if len(files) > len(known):
        yield f"{times(len(files) - len(known), 'change')} of a file whose name is erased"


def _open_ends(tree: ReviewedTree, handoff: Handoff, calls: Iterable[CallRecord]) -> Iterator[str]:
    yield from _open_ends_of(handoff.state, calls)
    standing = standing_of(tree.verdicts(handoff.id, handoff.attempt))
    if handoff.state is State.COMPLETED and standing is Standing.UNVERIFIED:
        yield "nobody verified it"
    report = None if handoff.run is None or handoff.run not in tree.runs else tree.report(handoff.run)
    if report is not None and report.open_questions:
        yield times(len(report.open_questions), "open question")


def _open_ends_of(state: State | RunState, calls: Iterable[CallRecord]) -> Iterator[str]:
    if state in (OPEN if isinstance(state, State) else _GOES_ON):
        yield f"it is {state}"
    doubts = [call for call in calls if call.in_doubt]
    if doubts:
        yield f"{times(len(doubts), 'call')} in doubt"
