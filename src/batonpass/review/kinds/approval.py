"""Findings about approvals and credentials: whether a person really decided, and whose hands acted."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from statistics import median
from typing import Final

from batonpass.model.base.ids import AgentId, Digest, PrincipalId
from batonpass.model.base.kinds import Gate
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


def find_approval_theatre(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield approvals without the material, faster than anybody reads, by an agent, or by somebody who approves all."""
    for person, ruled in _rulings(tree).items():
        for hold, approval in ruled:
            why = _cannot_judge(hold, approval) if approval.is_for else None
            if why is not None:
                yield tree.found(
                    APPROVAL_THEATRE,
                    _held(tree, hold),
                    f"{person} approved {why}",
                    (approval.receipt, hold.receipt),
                )
        looked = [approval.looked.total_seconds() for _, approval in ruled if approval.looked is not None]
        if len(looked) < _MANY or not all(approval.is_for for _, approval in ruled):
            continue
        if median(looked) >= _HURRIED.total_seconds():
            continue
        # Who only glanced at each of them is named above, once for each.
        if all(_cannot_judge(hold, approval) for hold, approval in ruled):
            continue
        sentence = f"{person} approved all {len(ruled)}, half of them in less than {_HURRIED.seconds} seconds"
        yield tree.found(APPROVAL_THEATRE, tree.runs[tree.root], sentence, (approval.receipt for _, approval in ruled))


def _rulings(tree: ReviewedTree) -> dict[PrincipalId, list[tuple[HoldRecord, Approval]]]:
    found = defaultdict(list)
    for hold in tree.holds:
        for approval in hold.approvals:
            found[approval.by].append((hold, approval))
    return found


def _cannot_judge(hold: HoldRecord, approval: Approval) -> str | None:
    """Return why somebody cannot have judged what they approved; None if they can."""
    if hold.hold.gate is Gate.APPROVE and approval.by.startswith("agent:"):
        return "it, and is an agent: a person has to"
    if approval.shown is None:
        return "it without having been shown what would happen"
    if approval.looked is not None and approval.looked < _GLANCE:
        return f"it after {approval.looked.total_seconds():.1f} seconds"
    return None


def find_unproven_approvals(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield what a person had to approve, and nobody signed for."""
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
