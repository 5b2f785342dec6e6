"""Endorse content from outside for all attempts at a handoff."""

from batonpass.errors import NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.taint.intake import find_sources
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import HandoffId, PrincipalId
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import HandoffEndorsed


def endorse_in_handoff(desk: Desk, handoff: HandoffId, source: Source, *, by: str, reason: str) -> None:
    """Record that a person answers for a source: from now on, it taints no attempt at the handoff.

    Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the source reached no attempt.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(source, by)
    with desk.store.view() as view:
        if source not in find_sources(view, handoff):
            raise NotFoundError(f"content from outside that taints {handoff}", source)
    body = HandoffEndorsed(handoff=handoff, by=PrincipalId(by), source=source)
    desk.recording.act(handoff, lambda _, __: body, (desk.text(REASON, reason),))
