"""Sessions for programs: everything that a session keeps, opens again, leaves and waits for, in JSON."""

from collections.abc import Sequence

from batonpass.accounts.session_diff import Change
from batonpass.model.base.ids import SessionId
from batonpass.model.baton.session import WHY, Said, SessionState
from batonpass.model.ledger.run import Run
from batonpass.records.shape import exact
from batonpass.wire.documents import to_document


def session_facts(session: SessionId, roots: Sequence[Run]) -> dict[str, object]:
    """Return a session as it stands in a list."""
    last = roots[-1]
    return {
        "id": session,
        "roots": [root.id for root in roots],
        "series": last.series,
        "principal": last.principal,
        "agent": last.agent,
        "state": last.state,
        "began_at": exact(roots[0].started_at),
        "last_began_at": exact(last.started_at),
    }


def state_facts(state: SessionState) -> dict[str, object]:
    """Return what a session leaves to the next one."""
    return {
        "from": list(state.roots),
        "at": exact(state.at),
        "items": state.items,
        "bytes": state.bytes,
        "oldest_at": exact(state.oldest),
        "kept": [{**_said(kept.said), "unchecked": list(kept.unchecked)} for kept in state.kept],
        "revisit": [{**_said(one.said), "reasons": list(one.reasons)} for one in state.revisit],
        "dropped": [
            {"what": one.what, "why": one.why, "words": WHY[one.why], "item": one.item, "source": one.source}
            for one in state.dropped
        ],
        "in_flight": [
            {
                "handoff": child.handoff,
                "to": child.to,
                "task": child.task,
                "state": child.state,
                "root": child.root,
                "offered_at": exact(child.offered_at),
            }
            for child in state.in_flight
        ],
        "cached": [
            {
                "tool": cached.tool,
                "call": cached.call,
                "run": cached.run,
                "made_at": exact(cached.made_at),
                "until": exact(cached.until),
            }
            for cached in state.caches
        ],
    }


def change_facts(change: Change) -> dict[str, object]:
    """Return one thing that is not as it was."""
    return {
        "topic": change.topic,
        "turn": change.turn,
        "what": change.what,
        "before": change.before,
        "after": change.after,
    }


def _said(said: Said) -> dict[str, object]:
    return {
        "type": type(said.value).__name__,
        "value": to_document(said.value),
        "by": said.by,
        "at": exact(said.at),
        "source": None if said.source is None else said.source.item,
    }
