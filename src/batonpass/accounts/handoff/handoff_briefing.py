"""The briefing of a handoff, read from receipts: the text for its receiver, whether or not it was accepted yet."""

from collections.abc import Callable
from datetime import datetime

from batonpass.briefing.references import Excerpt, read_reference
from batonpass.briefing.render import LIMIT, Briefing, brief
from batonpass.errors import GrantError, NotFoundError
from batonpass.handoff.grants.effective_grant import read_grant_of
from batonpass.handoff.history.offers import read_offer
from batonpass.model.base.ids import ContentId
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.model.ledger.run import Handoff
from batonpass.store.port import LedgerView


def brief_handoff(
    view: LedgerView, handoff: Handoff, at: datetime, *, can_ask: bool = True, limit: int = LIMIT
) -> tuple[Briefing, EffectiveGrant | None]:
    """Return the briefing of a handoff for a model, and its grant; None if the grant cannot be read any more."""
    grant = _grant(view, handoff, at)
    baton = read_offer(view, handoff).baton
    return brief(baton, read=_reader(view), grant=grant, can_ask=can_ask, limit=limit), grant


def read_deferred(view: LedgerView, handoff: Handoff, ref: str, start: int = 0) -> Excerpt:
    """Return a part of a text that the briefing gives by reference. Raises `InvalidValueError` for anything else."""
    return read_reference(read_offer(view, handoff).baton, ref, read=_reader(view), start=start)


def _reader(view: LedgerView) -> Callable[[ContentId], bytes | None]:
    def read(content: ContentId) -> bytes | None:
        try:
            return view.get_content(content).body
        except NotFoundError:
            return None

    return read


def _grant(view: LedgerView, handoff: Handoff, at: datetime) -> EffectiveGrant | None:
    try:
        return read_grant_of(view, handoff, at)
    except GrantError:
        return None  # the grant is gone or was changed; `batonpass ledger verify` says which
