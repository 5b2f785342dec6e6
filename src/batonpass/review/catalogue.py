"""The catalogue: every kind of finding, and the function that finds it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from batonpass.review.finding import Finding, FindingKind
from batonpass.review.kinds import approval, effect, outside, repetition, scope, state, work
from batonpass.review.reviewed_tree import ReviewedTree

Finder: TypeAlias = Callable[[ReviewedTree], Iterator[Finding]]

FINDERS: Final[tuple[tuple[FindingKind, Finder], ...]] = (
    (scope.SCOPE_DRIFT, scope.find_scope_drift),
    (scope.OVER_GRANT, scope.find_over_grants),
    (scope.WIDE_GRANT, scope.find_wide_grants),
    (scope.BEYOND_TASK, scope.find_beyond_tasks),
    (approval.APPROVAL_THEATRE, approval.find_approval_theatre),
    (approval.APPROVAL_HABIT, approval.find_approval_habits),
    (approval.UNPROVEN_APPROVAL, approval.find_unproven_approvals),
    (approval.SHARED_CREDENTIAL, approval.find_shared_credentials),
    (outside.INJECTION_PATH, outside.find_injection_paths),
    (outside.TRUST_ESCALATION, outside.find_trust_escalations),
    (work.GHOST_TASK, work.find_ghost_tasks),
    (work.DISOBEYED_TASK, work.find_disobeyed_tasks),
    (work.DISOBEYED_ROLE, work.find_disobeyed_roles),
    (work.IGNORED_STOP, work.find_ignored_stops),
    (work.PREMATURE_END, work.find_premature_ends),
    (work.UNEXPLAINED_CHANGE, work.find_unexplained_changes),
    (state.LOST_CONSTRAINT, state.find_lost_constraints),
    (state.RELAXED_CONSTRAINT, state.find_relaxed_constraints),
    (state.UNANSWERED_QUESTION, state.find_unanswered_questions),
    (state.SUPPRESSED_QUESTION, state.find_suppressed_questions),
    (state.RETRIED_PATH, state.find_retried_paths),
    (state.STALE_STATE, state.find_stale_state),
    (state.ABRIDGED_STATE, state.find_abridged_state),
    (state.SELF_VERIFIED, state.find_self_verified),
    (repetition.REPEATED_STEP, repetition.find_repeated_steps),
    (repetition.LOOP, repetition.find_loops),
    (repetition.CIRCULAR_DELEGATION, repetition.find_circular_delegations),
    (effect.EFFECT_IN_DOUBT, effect.find_effects_in_doubt),
    (effect.DOUBLED_EFFECT, effect.find_doubled_effects),
    (effect.RECORD_GAP, effect.find_record_gaps),
)
# The only kind that depends on the time of the question.
UNCLOSED: Final = work.UNCLOSED_RUN

KINDS: Final[Mapping[str, FindingKind]] = {
    kind.code: kind for kind in sorted((*(kind for kind, _ in FINDERS), UNCLOSED), key=lambda kind: kind.code)
}


def find_all(tree: ReviewedTree, now: datetime) -> list[Finding]:
    """Return all findings of a tree, the worst first, then the oldest."""
    found = [finding for _, find in FINDERS for finding in find(tree)]
    found += work.find_unclosed_runs(tree, now)
    return sorted(found, key=lambda finding: (finding.severity.rank, finding.at, finding.kind.code, finding.key))
