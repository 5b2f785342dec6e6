"""Findings about approvals and credentials: whether a person really decided, and whose hands acted."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from statistics import median
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.model.base.ids import AgentId, Digest, PrincipalId
from batonpass.model.base.kinds import Gate
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.model.ledger.ruling import Decided, is_approval
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallRecord
from batonpass.records.grant import read_credential
from batonpass.records.hold import Approval, HoldRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, times
from batonpass.review.reviewed_tree import ReviewedTree

APPROVAL_THEATRE: Final = FindingKind(
    code="approval-theatre",
    title="Approval theatre",
    severity=Severity.MEDIUM,
    matters="Somebody approved what they cannot have judged, so the approval protects nobody.",
    mast="3.3",
    owasp="ASI09",
)
APPROVAL_HABIT: Final = FindingKind(
    code="approval-habit",
    title="Approval habit",
    severity=Severity.MEDIUM,
    matters="Somebody approves whatever they are asked, so a gate that waits for them stops nothing.",
    mast="3.3",
    owasp="ASI09",
)
UNPROVEN_APPROVAL: Final = FindingKind(
    code="unproven-approval",
    title="Unproven approval",
    severity=Severity.LOW,
    matters="No approver's key signed, so the name under the approval is only a claim.",
    owasp="ASI09",
)
SHARED_CREDENTIAL: Final = FindingKind(
    code="shared-credential",
    title="Shared credential",
    severity=Severity.MEDIUM,
    matters="Others cannot tell apart which of the agents acted, and one leak opens all of them.",
    owasp="ASI03",
)

_GLANCE: Final = timedelta(seconds=1)  # nobody reads a sheet of what will happen in less
_HURRIED: Final = timedelta(seconds=5)  # nor five of them, one after the other, in less than this each
_MANY: Final = 5
_LATEST: Final = 20  # rulings of one person that are a habit; older ones may be another life
_PERSON: Final = "user:"
_AGENT: Final = "agent:"

Ruled: TypeAlias = tuple[HoldRecord, Approval]


class Habit(Struct, frozen=True, kw_only=True):
    """The latest rulings of one person, in this tree and before it."""

    person: PrincipalId
    approved: tuple[Receipt, ...]  # all of them, the latest first
    trees: int


def find_approval_theatre(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield approvals by people who cannot have judged, and by the one who asked although somebody else could rule."""
    hurried = {habit.person for habit in _habits(tree)}
    for person, ruled in _rulings(tree).items():
        alike: dict[str, list[Ruled]] = defaultdict(list)
        for hold, approval in ruled:
            why = _cannot_judge(tree, hold, approval) if approval.is_for else None
            # Who glances at everything is named once, by the habit.
            if why is not None and not (why == _QUICK and person in hurried):
                alike[why].append((hold, approval))
        for why, same in alike.items():
            yield _theatre(tree, person, why, same)
        own = [(hold, approval) for hold, approval in ruled if _is_own(hold, approval)]
        others = _others(tree, own[0][1]) if own else ()
        if others:
            what = "it" if len(own) == 1 else f"{len(own)} things"
            words = f"{person} approved {what} that is done for {person}; {listed(others)} could have looked"
            yield _found(tree, own, words, Severity.LOW)


def _theatre(tree: ReviewedTree, person: PrincipalId, why: str, same: list[Ruled]) -> Finding:
    looked = max((one.looked for _, one in same if one.looked is not None), default=None)
    seconds = ""
    if looked is not None and why == _QUICK:
        took = f"{looked.total_seconds():.1f} seconds"
        seconds = f": in {took}" if len(same) == 1 else f": in at most {took} each"
    what = "it" if len(same) == 1 else f"{len(same)} things"
    return _found(tree, same, f"{person} approved {what} {why}{seconds}", Severity.MEDIUM)


def _found(tree: ReviewedTree, ruled: list[Ruled], sentence: str, severity: Severity) -> Finding:
    subject = _held(tree, ruled[0][0]) if len(ruled) == 1 else tree.runs[tree.root]
    receipts = (receipt for hold, approval in ruled for receipt in (approval.receipt, hold.receipt))
    return tree.found(APPROVAL_THEATRE, subject, sentence, receipts, severity=severity)


def _rulings(tree: ReviewedTree) -> dict[PrincipalId, list[Ruled]]:
    found = defaultdict(list)
    for hold in tree.holds:
        for approval in hold.approvals:
            found[approval.by].append((hold, approval))
    return found


_AS_AGENT: Final = "and is an agent: a person has to"
_BLIND: Final = "without having been shown what would happen"
_UNAWARE: Final = "of a child, without having been shown what the call would do"
_QUICK: Final = "faster than anybody reads"


def _cannot_judge(tree: ReviewedTree, hold: HoldRecord, approval: Approval) -> str | None:
    """Return why somebody cannot have judged the thing that they approved; None if they can."""
    if approval.by.startswith(_AGENT):
        if hold.hold.gate is Gate.APPROVE:
            return _AS_AGENT
        if approval.shown is not None:
            return None  # a program reads as fast as it likes
        # A sender that looks once more at its own offer has written every word of it.
        return None if hold.hold.call is None and _is_sender(tree, hold, approval.by) else _UNAWARE
    if approval.shown is None:
        return _BLIND
    return _QUICK if approval.looked is not None and approval.looked < _GLANCE else None


def _is_sender(tree: ReviewedTree, hold: HoldRecord, by: PrincipalId) -> bool:
    handoff = None if hold.hold.handoff is None else tree.handoffs.get(hold.hold.handoff)
    return handoff is not None and by == f"{_AGENT}{tree.runs[handoff.parent].agent}"


def _is_own(hold: HoldRecord, approval: Approval) -> bool:
    """Return whether a person alone approved their own work, where a rule wants a person to approve it."""
    alone = {one.by for one in hold.approvals if one.is_for} == {approval.by}
    return approval.is_for and alone and hold.hold.gate is Gate.APPROVE and approval.by == hold.hold.principal


def _others(tree: ReviewedTree, approval: Approval) -> list[str]:
    """Return other people who approve things here: who has a key, or has ruled before."""
    # Alone at a machine, whoever asks is whoever approves, and that is no theatre.
    keys = (
        key.principal
        for key in tree.view.find_keys()
        if key.role is KeyRole.APPROVER and key.status is KeyStatus.ACTIVE
    )
    ruled = (one.name for one in tree.view.find_remarks(RemarkKind.RULED) if one.receipt < approval.receipt.id)
    known = (*keys, *islice(ruled, _LATEST))
    return sorted({str(name) for name in known if name != approval.by and str(name).startswith(_PERSON)})


def find_approval_habits(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the people who approve whatever they are shown, faster than anybody reads, over trees and weeks."""
    for habit in _habits(tree):
        where = "" if habit.trees == 1 else f" in {habit.trees} trees"
        span = habit.approved[0].at - habit.approved[-1].at
        days = f" over {times(span.days, 'day')}" if span.days else ""
        yield tree.found(
            APPROVAL_HABIT,
            tree.runs[tree.root],
            f"{habit.person} approved all of the latest {len(habit.approved)}{where}{days}, "
            f"half of them in less than {_HURRIED.seconds} seconds",
            habit.approved,
            person=habit.person,
            go_on=("batonpass policy explain",),
        )


def _habits(tree: ReviewedTree) -> Iterator[Habit]:
    for person, ruled in _rulings(tree).items():
        if not person.startswith(_PERSON):
            continue
        # What they do later is no part of this tree: what is found in it stays the same.
        last = max(approval.receipt.id for _, approval in ruled)
        decided = [*tree.earlier.rulings.find(person, until=last, most=_LATEST)]
        looked = [seconds for one in decided if (seconds := _looked(one.body)) is not None]
        if len(looked) < _MANY or not all(is_approval(one.body) for one in decided):
            continue
        if median(looked) < _HURRIED.total_seconds():
            trees = len({one.root for one in decided})
            yield Habit(person=person, approved=tuple(one.receipt for one in decided), trees=trees)


def _looked(body: Decided) -> float | None:
    """Return for how many seconds somebody looked; 0 if they were shown nothing, None if nobody knows."""
    known = body.looked_ms if body.measured_ms is None else body.measured_ms
    return (0.0 if body.shown is None else None) if known is None else known / 1000


def find_unproven_approvals(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the approvals that a rule wanted from a person, and that nobody signed."""
    for hold in tree.holds:
        if hold.hold.gate is not Gate.APPROVE or not hold.is_let:
            continue
        unproven = [approval for approval in hold.approvals if approval.is_for and not approval.is_proven]
        if unproven:
            names = listed(approval.by for approval in unproven)
            yield tree.found(
                UNPROVEN_APPROVAL,
                _held(tree, hold),
                f"the approval by {names} is not signed by an approver's key",
                (*(approval.receipt for approval in unproven), hold.receipt),
                go_on=("batonpass approver add --help",),
            )


def _held(tree: ReviewedTree, hold: HoldRecord) -> Run | Handoff | CallRecord:
    if hold.hold.call is not None and hold.hold.call in tree.calls:
        return tree.calls[hold.hold.call]
    if hold.hold.handoff is not None:
        return tree.handoffs[hold.hold.handoff]
    return tree.runs[tree.root]


def find_shared_credentials(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the credentials that several agents of a tree used."""
    for first in _first_uses(tree).values():
        if len(first) > 1:
            known = read_credential(tree.view, next(iter(first.values())))
            name = "a credential" if known is None or known.name is None else f"the credential {known.name}"
            yield tree.found(
                SHARED_CREDENTIAL,
                tree.runs[tree.root],
                f"{times(len(first), 'agent')} used {name}: {listed(first)}",
                (call.receipt for call in first.values()),
            )


def _first_uses(tree: ReviewedTree) -> dict[Digest, dict[AgentId, CallRecord]]:
    found: dict[Digest, dict[AgentId, CallRecord]] = defaultdict(dict)
    for call in tree.calls.values():
        if call.credential is not None and call.is_made:
            found[call.credential].setdefault(tree.runs[call.run].agent, call)
    return found
