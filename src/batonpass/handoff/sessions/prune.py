"""Take items out of the remains of a session: a person decides it, and a receipt says so.

The inherited items are derived from receipts, and grow with every session. Nothing is erased by this: the items stay in
the trees that recorded them. They are only not inherited from this root any more.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from batonpass.audit.session_roots import find_roots, find_stops
from batonpass.errors import InvalidValueError, NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.sessions.session_state import carried_from, read_session
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import PrincipalId, RunId, SessionId
from batonpass.model.baton.baton import INHERITED
from batonpass.model.baton.contradiction import words_of
from batonpass.model.baton.items import ItemValue
from batonpass.model.baton.session import Said
from batonpass.model.bodies.body import SessionPruned
from batonpass.records.remarks.pruned import PRUNED, mark_of
from batonpass.store.port import LedgerView

_LEAST: Final = 4  # characters of an id, or of a text


def find_inherited(view: LedgerView, session: SessionId, at: datetime) -> tuple[RunId, list[Said]]:
    """Return where a session stopped last, and everything that it would leave to the next."""
    stops = find_stops(view, find_roots(view, session))
    state = read_session(view, stops, at, session=session)
    return stops[-1].root, carried_from(state, at)


def prune(
    desk: Desk,
    session: SessionId,
    chosen: Iterable[str] = (),
    *,
    by: str,
    reason: str,
    before: datetime | None = None,
) -> tuple[ItemValue, ...]:
    """Take out the items that a person names, or all from before a moment, and record it. Return them.

    A name is the id of an item, its last characters, or words that it begins with. Constraints and exclusions are not
    taken out by their age: a person has to name them. Raises `NotPersonError`, `NotFoundError` for a name that fits
    nothing, and `InvalidValueError` if there is nothing to take out.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(session, by, act="prune")
    with desk.store.view() as view:
        root, inherited = find_inherited(view, session, desk.clock.now())
    taken: dict[ItemValue, None] = {}
    for name in chosen:
        taken.update(dict.fromkeys(_named(name, inherited)))
    if before is not None:
        taken.update((one.value, None) for one in inherited if one.at < before and not _binds(one))
    if not taken:
        raise InvalidValueError("items", "names nothing that comes along")
    body = SessionPruned(root=root, by=PrincipalId(by), count=len(taken))
    marks = json.dumps([mark_of(value) for value in taken], ensure_ascii=False).encode()
    desk.recording.note(body, (desk.json(PRUNED, marks), desk.text(REASON, reason)))
    return tuple(taken)


def _binds(said: Said) -> bool:
    return said.value.part in INHERITED


def _named(name: str, inherited: Sequence[Said]) -> list[ItemValue]:
    if len(name) < _LEAST:
        raise InvalidValueError("item", f"{name!r} is too short: at least {_LEAST} characters of its id or its words")
    found = [
        one.value
        for one in inherited
        if (one.source is not None and one.source.item.endswith(name)) or words_of(one.value).startswith(name)
    ]
    if not found:
        raise NotFoundError("item that comes along", name)
    return found
