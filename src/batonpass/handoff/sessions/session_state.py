"""Sessions: the state inherited from earlier root runs, and saving a point to come back to."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.guard.constraints.conditions import CheckAnswer, KnownWorld, SeenState, evaluate
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.sessions.carry_over import choose_artifacts, choose_checks, judge, settle
from batonpass.handoff.sessions.condition_checks import Check, look_at_files, run_checks
from batonpass.handoff.sessions.tree_remains import Left, read_left
from batonpass.ledger.position import child_head
from batonpass.model.base.ids import ContentId, HandoffId, PrincipalId, RunId, SessionId, StreamId
from batonpass.model.base.label import named_sources
from batonpass.model.baton.contradiction import Saying, find_contradictions, words_of
from batonpass.model.baton.items import Artifact, Constraint, Decision, ItemValue
from batonpass.model.baton.session import (
    ASKING,
    Dropped,
    Fate,
    Kept,
    OpenCheck,
    Revisit,
    Said,
    SessionState,
    Stop,
    session_of,
)
from batonpass.model.bodies.body import Carried, ChildHead, SessionResumed, SessionSaved
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.records.remarks.pruned import find_pruned, key_of
from batonpass.store.port import LedgerView
from batonpass.wire.documents import encode_item
from batonpass.wire.receipt_codec import decode_receipt

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding


def read_session(
    view: LedgerView,
    stops: Sequence[Stop],
    at: datetime,
    *,
    session: SessionId | None = None,
    anew: Sequence[ItemValue] = (),
) -> SessionState:
    """Return the state that some roots leave to the next. New statements in `anew` take precedence. No checks run.

    Raises `NotFoundError` for a root that does not exist.
    """
    return sort_out(_read(view, stops, at), stops, at, session=session, anew=anew)


def sort_out(
    left: Left,
    stops: Sequence[Stop],
    at: datetime,
    *,
    session: SessionId | None = None,
    anew: Sequence[ItemValue] = (),
    checks: Mapping[str, Check] | None = None,
) -> SessionState:
    """Return which of the remains come along. If `checks` is None, no check is run."""
    counting, overtaken = settle(left, anew)
    artifacts, unneeded = choose_artifacts(left, counting)
    conditions = [condition for said in counting for condition in _conditions(said)]
    known = KnownWorld(
        at=at,
        artifacts=_artifacts(left),
        files=look_at_files(conditions),
        constraints=_values(anew, counting),
        checks=_answers(conditions, checks),
    )
    judged = [*judge((*counting, *artifacts), partial(evaluate, known=known), left.fallen)]
    unverified, checked = choose_checks(left)
    pruned: list[Kept | Revisit | OpenCheck] = [
        *(one for one in judged if _is_pruned(left, one.value if isinstance(one, Kept) else one.question, one.said.at)),
        *(one for one in unverified if _is_pruned(left, one.question, one.at)),
    ]
    kept = tuple(one for one in judged if isinstance(one, Kept) and one not in pruned)
    revisit = tuple(one for one in judged if isinstance(one, Revisit) and one not in pruned)
    open_checks = tuple(one for one in unverified if one not in pruned)
    carried: list[tuple[ItemValue, PrincipalId, datetime]] = [(one.value, one.said.by, one.said.at) for one in kept]
    carried += [(one.question, one.said.by, one.said.at) for one in revisit]
    carried += [(one.question, ASKING, one.at) for one in open_checks]
    return SessionState(
        session=session,
        roots=tuple(stop.root for stop in stops),
        at=at,
        kept=kept,
        revisit=revisit,
        dropped=(*left.dropped, *overtaken, *unneeded, *checked, *map(_taken_out, pruned)),
        checks=open_checks,
        contradictions=tuple(find_contradictions((one.value, _saying(one.said)) for one in kept)),
        in_flight=tuple(dict.fromkeys(left.in_flight)),
        caches=tuple(left.caches),
        bytes=sum(len(encode_item(value, by, said_at)) for value, by, said_at in carried),
    )


def inherit(
    desk: "Desk",
    stops: Sequence[Stop],
    *,
    session: SessionId | None = None,
    anew: Sequence[ItemValue] = (),
) -> tuple[SessionState, tuple[ChildHead, ...]]:
    """Return the state inherited from some root runs, after all conditions and checks, and the heads of those roots."""
    at = desk.clock.now()
    with desk.store.view() as view:
        heads = tuple(child_head(view.get_stream(StreamId(stop.root))) for stop in stops)
        left = _read(view, stops, at)
    # Outside of the view: a check is foreign code and may take long.
    return sort_out(left, stops, at, session=session, anew=anew, checks=desk.checks), heads


def find_said_outside(desk: "Desk", state: SessionState) -> frozenset[ItemValue]:
    """Return the items from runs that knew content from outside. They stay tainted: no session cleans them."""
    outside: set[ItemValue] = set()
    kept = [(one.said.source, one.value) for one in state.kept]
    revisited = [(one.said.source, one.question) for one in state.revisit]
    checked = [(one.source, one.question) for one in state.checks]
    with desk.store.view() as view:
        for source, value in (*kept, *revisited, *checked):
            introduced = None if source is None else view.get_content(source.item).receipt
            if introduced is not None and is_made_of_outside(decode_receipt(view.get_receipt(introduced).payload)):
                outside.add(value)
    return frozenset(outside)


def resumed(
    run: RunId, state: SessionState, heads: tuple[ChildHead, ...], outside: Iterable[ContentId] = ()
) -> SessionResumed:
    """Return the receipt body that lists the inherited items."""
    return SessionResumed(
        run=run,
        roots=heads,
        resumes=state.session,
        kept=_kept(state),
        revisit=_revisited(state),
        dropped=len(state.dropped),
        in_flight=_in_flight(state),
        bytes=state.bytes,
        oldest=state.oldest,
        taint=named_sources(run, outside),
    )


def save_session(desk: "Desk", holding: "Holding") -> SessionId:
    """Save the state that a session would pass on if it were resumed now. Return the id of the session.

    Checks are not run: they are about the moment of resuming. Raises `InvalidValueError` for a run that is no root.
    """
    run = holding.working.run
    if run.parent is not None:
        raise InvalidValueError("session", f"{run.id} is no root; a session is saved where it began")
    session = session_of(run)
    if holding.replaying:
        return session
    with desk.store.view() as view:
        state = read_session(view, (Stop(run.id),), desk.clock.now(), session=session)
    fill_gap(desk, holding)
    saved = SessionSaved(
        run=run.id,
        saves=session,
        kept=_kept(state),
        revisit=_revisited(state),
        dropped=len(state.dropped),
        in_flight=_in_flight(state),
    )
    desk.recording.record(holding.working, saved)
    return session


def carried_from(state: SessionState, at: datetime) -> list[Said]:
    """Return the first items of a root: kept items, and reopened decisions and open checks as questions."""
    asked = [replace(one.said, value=one.question, by=ASKING, at=at) for one in state.revisit]
    checked = [Said(value=one.question, by=ASKING, at=one.at, source=one.source) for one in state.checks]
    return [*(one.said for one in state.kept), *asked, *checked]


def _read(view: LedgerView, stops: Sequence[Stop], at: datetime) -> Left:
    """Read some roots. Before each, read its handoffs in flight in other trees: they may have ended since."""
    left = Left()
    seen: set[HandoffId] = set()
    for stop in stops:
        own = read_left(view, stop.root, at, after=stop.after)
        elsewhere: dict[RunId, set[HandoffId]] = {}
        for handoff in own.pending:
            with suppress(NotFoundError):  # a tree that was imported alone lacks the others
                if handoff not in seen:
                    elsewhere.setdefault(view.get_handoff(handoff).root, set()).add(handoff)
        for tree, handoffs in elsewhere.items():
            left.add(read_left(view, tree, at, below=frozenset(handoffs)))
            seen |= handoffs
        left.add(own)
        left.pruned |= find_pruned(view, stop.root)
    left.artifacts.sort(key=lambda found: found[0].at)
    return left


def _answers(conditions: Sequence[str], checks: Mapping[str, Check] | None) -> dict[str, CheckAnswer] | None:
    return None if checks is None else run_checks(conditions, checks)


def _conditions(said: Said) -> tuple[str, ...]:
    return said.value.conditions if isinstance(said.value, Decision) else ()


def _artifacts(left: Left) -> dict[str, SeenState]:
    """Return our artifacts by name, as they are now. An artifact from outside never replaces one of ours."""
    outside = {name: SeenState(None, "came from outside: fetch it anew") for name in left.outside}
    ours = {
        said.value.name: SeenState(said.value.sha256) for said, _ in left.artifacts if isinstance(said.value, Artifact)
    }
    return outside | ours


def _values(anew: Iterable[ItemValue], counting: Iterable[Said]) -> dict[str, tuple[str, ...]]:
    """Return the values of typed constraints that apply to the next run, by key."""
    values: dict[str, dict[str, None]] = {}
    for value in (*anew, *(said.value for said in counting)):
        if isinstance(value, Constraint) and value.key is not None and value.value is not None:
            values.setdefault(value.key, {})[value.value] = None
    return {key: tuple(found) for key, found in values.items()}


def _sources(said: Iterable[Said]) -> tuple[Carried, ...]:
    return tuple(dict.fromkeys(one.source for one in said if one.source is not None))


def _is_pruned(left: Left, value: ItemValue, at: datetime) -> bool:
    taken = left.pruned.get(key_of(value)) if left.pruned else None
    return taken is not None and at <= taken


def _taken_out(one: Kept | Revisit | OpenCheck) -> Dropped:
    value = one.value if isinstance(one, Kept) else one.question
    source = one.source if isinstance(one, OpenCheck) else one.said.source
    return Dropped(what=words_of(value), why=Fate.PRUNED, item=None if source is None else source.item)


def _kept(state: SessionState) -> tuple[Carried, ...]:
    checked = (one.source for one in state.checks if one.source is not None)
    return tuple(dict.fromkeys((*_sources(one.said for one in state.kept), *checked)))


def _saying(said: Said) -> Saying:
    item = None if said.source is None else said.source.item
    return Saying(words=words_of(said.value), by=said.by, at=said.at, item=item)


def _revisited(state: SessionState) -> tuple[ContentId, ...]:
    return tuple(dict.fromkeys(one.item for one in _sources(revisit.said for revisit in state.revisit)))


def _in_flight(state: SessionState) -> tuple[HandoffId, ...]:
    return tuple(child.handoff for child in state.in_flight)
