"""A person acknowledges a finding: it stays on record, and stops no pipeline any more."""

from batonpass.audit.meant_ids import SHORTEST
from batonpass.errors import AmbiguousIdError, NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import PrincipalId, RunId
from batonpass.model.bodies.body import FindingAcknowledged
from batonpass.review.finding import Finding
from batonpass.review.review import review_root


def acknowledge(desk: Desk, root: RunId, finding: str, *, by: str, reason: str) -> Finding:
    """Record that a person has seen a finding of a tree and answers for leaving it. Return the finding.

    Name it by the beginning or the end of its key, or by its kind if there is one of it. Raises `NotPersonError` if
    `by` is no person, `NotFoundError` if the tree has no such finding, and `AmbiguousIdError` if it has several.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(finding, by, act="acknowledge")
    with desk.store.view() as view:
        found = review_root(view, root, desk.clock.now()).findings
    known = [one for one in found if len(finding) >= SHORTEST]
    meant = [one for one in known if one.key.startswith(finding) or one.key.endswith(finding)]
    meant = meant or [one for one in found if one.kind.code == finding]
    if not meant:
        raise NotFoundError("finding", finding)
    if len(meant) > 1:
        raise AmbiguousIdError("finding", finding, tuple(f"{one.key}  {one.sentence}" for one in meant))
    body = FindingAcknowledged(root=root, finding=meant[0].key, code=meant[0].kind.code, by=PrincipalId(by))
    desk.recording.note(body, (desk.text(REASON, reason),))
    return meant[0]
