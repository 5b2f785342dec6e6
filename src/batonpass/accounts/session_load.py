"""The load of sessions: how many items they carry, how old, how fast it grew, and decisions without their reason."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.audit.session_roots import find_stops
from batonpass.errors import NotFoundError
from batonpass.handoff.sessions.session_state import read_session
from batonpass.model.base.ids import ContentId, SessionId
from batonpass.model.baton.items import Decision
from batonpass.model.baton.session import Said, SessionState
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView

_CITED: Final = re.compile(r"content_[0-9a-z]{26}")


class UnreasonedDecision(Struct, frozen=True, kw_only=True):
    """A decision that comes along although nobody can tell any more why it holds."""

    decision: Decision
    said: Said
    reasons: tuple[str, ...]


class SessionLoad(Struct, frozen=True, kw_only=True):
    """The items that a session would pass on now, compared with those after its first root."""

    session: SessionId
    roots: tuple[Run, ...]
    state: SessionState
    first: SessionState
    unreasoned: tuple[UnreasonedDecision, ...]


def weigh_session(view: LedgerView, session: SessionId, roots: Sequence[Run], at: datetime) -> SessionLoad:
    """Return the load of a session at a moment."""
    state = read_session(view, find_stops(view, roots), at, session=session)
    first = state if len(roots) == 1 else read_session(view, find_stops(view, roots[:1]), at, session=session)
    return SessionLoad(
        session=session,
        roots=tuple(roots),
        state=state,
        first=first,
        unreasoned=tuple(find_unreasoned(view, state)),
    )


def find_unreasoned(view: LedgerView, state: SessionState) -> Iterator[UnreasonedDecision]:
    """Yield decisions that come along without a reason: none was said, it was erased, or its condition is unknown.

    Decisions whose conditions are known to fail do not come along: they are open again.
    """
    for kept in state.kept:
        decision = kept.value
        if isinstance(decision, Decision):
            reasons = [] if decision.why else ["nobody said why"]
            reasons += [f"nobody can tell whether {condition!r} still holds" for condition in kept.unchecked]
            reasons += [f"it cites {cited}, which was erased" for cited in _find_erased(view, decision)]
            if reasons:
                yield UnreasonedDecision(decision=decision, said=kept.said, reasons=tuple(reasons))


def _find_erased(view: LedgerView, decision: Decision) -> Iterator[ContentId]:
    for cited in dict.fromkeys(_CITED.findall(" ".join((decision.why, *decision.conditions)))):
        try:
            if view.get_content(ContentId(cited)).body is None:
                yield ContentId(cited)
        except NotFoundError:
            continue  # a name that looks like one, and is none
