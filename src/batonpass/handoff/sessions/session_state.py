"""Sessions: what comes along from the roots that are continued, and marking a point to come back to."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.guard.constraints.conditions import CheckAnswer, KnownWorld, SeenState, evaluate
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.sessions.carry_over import choose_artifacts, judge, settle
from batonpass.handoff.sessions.condition_checks import Check, look_at_files, run_checks
from batonpass.handoff.sessions.tree_remains import Left, read_left
from batonpass.ledger.position import child_head
from batonpass.model.base.ids import ContentId, HandoffId, PrincipalId, RunId, SessionId, StreamId
from batonpass.model.base.label import named_sources
from batonpass.model.baton.items import Artifact, Constraint, Decision, ItemValue
from batonpass.model.baton.session import Kept, Revisit, Said, SessionState, Stop, session_of
from batonpass.model.bodies.body import Carried, ChildHead, SessionResumed, SessionSaved
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.store.port import LedgerView
from batonpass.wire.codec import decode_receipt
from batonpass.wire.documents import encode_item

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding

# A decision that is open again is put as a question by nobody in particular.
ASKING: Final = PrincipalId("service:batonpass")


def read_session(
    view: LedgerView,
    stops: Sequence[Stop],
    at: datetime,
    *,
    session: SessionId | None = None,
    anew: Sequence[ItemValue] = (),
) -> SessionState:
    """Return what roots leave to whoever goes on now; what is said `anew` goes before it. No checks are made.

    Raises `NotFoundError` for a root that never was.
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
    """Return what of all that was left behind comes along; without checks, none is asked for."""
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
    judged = [*judge((*counting, *artifacts), partial(evaluate, known=known))]
    kept = tuple(one for one in judged if isinstance(one, Kept))
    revisit = tuple(one for one in judged if isinstance(one, Revisit))
    carried = [(one.value, one.said) for one in kept] + [(one.question, one.said) for one in revisit]
    return SessionState(
        session=session,
        roots=tuple(stop.root for stop in stops),
        at=at,
        kept=kept,
        revisit=revisit,
        dropped=(*left.dropped, *overtaken, *unneeded),
        in_flight=tuple(dict.fromkeys(left.in_flight)),
        caches=tuple(left.caches),
        bytes=sum(len(encode_item(value, said.by, said.at)) for value, said in carried),
    )


def inherit(
    desk: "Desk",
    stops: Sequence[Stop],
    *,
    session: SessionId | None = None,
    anew: Sequence[ItemValue] = (),
) -> tuple[SessionState, tuple[ChildHead, ...]]:
    """Return what comes along from roots, conditions and checks included, and where those roots stood then."""
    at = desk.clock.now()
    with desk.store.view() as view:
        heads = tuple(child_head(view.get_stream(StreamId(stop.root))) for stop in stops)
        left = _read(view, stops, at)
    # Not while the ledger is being looked at: a check is somebody's code, and may take its time.
    return sort_out(left, stops, at, session=session, anew=anew, checks=desk.checks), heads


def find_said_outside(desk: "Desk", state: SessionState) -> frozenset[ItemValue]:
    """Return what of all that comes along was said by runs that knew content from outside: no session launders it."""
    outside: set[ItemValue] = set()
    kept = [(one.said.source, one.value) for one in state.kept]
    revisited = [(one.said.source, one.question) for one in state.revisit]
    with desk.store.view() as view:
        for source, value in (*kept, *revisited):
            introduced = None if source is None else view.get_content(source.item).receipt
            if introduced is not None and is_made_of_outside(decode_receipt(view.get_receipt(introduced).payload)):
                outside.add(value)
    return frozenset(outside)


def resumed(
    run: RunId, state: SessionState, heads: tuple[ChildHead, ...], outside: Iterable[ContentId] = ()
) -> SessionResumed:
    """Return what the receipt says of what came along."""
    return SessionResumed(
        run=run,
        roots=heads,
        resumes=state.session,
        kept=_sources(one.said for one in state.kept),
        revisit=_revisited(state),
        dropped=len(state.dropped),
        in_flight=_in_flight(state),
        bytes=state.bytes,
        oldest=state.oldest,
        taint=named_sources(run, outside),
    )


def save_session(desk: "Desk", holding: "Holding") -> SessionId:
    """Mark this point of a session: what would come along if it were resumed now. Return the session's id.

    Checks are not made: they are about the moment at which somebody goes on. Raises `InvalidValueError` for a run that
    is no root.
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
        kept=_sources(one.said for one in state.kept),
        revisit=_revisited(state),
        dropped=len(state.dropped),
        in_flight=_in_flight(state),
    )
    desk.recording.record(holding.working, saved)
    return session


def carried_from(state: SessionState, at: datetime) -> list[Said]:
    """Return what a root begins with: what was kept, and decisions that are open again as questions."""
    asked = [replace(one.said, value=one.question, by=ASKING, at=at) for one in state.revisit]
    return [*(one.said for one in state.kept), *asked]


def _read(view: LedgerView, stops: Sequence[Stop], at: datetime) -> Left:
    """Read roots, and before each of them what it knew to be in flight elsewhere: it may have ended since."""
    left = Left()
    seen: set[HandoffId] = set()
    for stop in stops:
        own = read_left(view, stop.root, at, after=stop.after)
        elsewhere: dict[RunId, set[HandoffId]] = {}
        for handoff in own.pending:
            with suppress(NotFoundError):  # a tree that was brought here alone does not have the others
                if handoff not in seen:
                    elsewhere.setdefault(view.get_handoff(handoff).root, set()).add(handoff)
        for tree, handoffs in elsewhere.items():
            left.add(read_left(view, tree, at, below=frozenset(handoffs)))
            seen |= handoffs
        left.add(own)
    left.artifacts.sort(key=lambda found: found[0].at)
    return left


def _answers(conditions: Sequence[str], checks: Mapping[str, Check] | None) -> dict[str, CheckAnswer] | None:
    return None if checks is None else run_checks(conditions, checks)


def _conditions(said: Said) -> tuple[str, ...]:
    return said.value.conditions if isinstance(said.value, Decision) else ()


def _artifacts(left: Left) -> dict[str, SeenState]:
    """Return by name the artifacts of ours as they are now; what came from outside does not take their place."""
    outside = {name: SeenState(None, "came from outside: fetch it anew") for name in left.outside}
    ours = {
        said.value.name: SeenState(said.value.sha256) for said, _ in left.artifacts if isinstance(said.value, Artifact)
    }
    return outside | ours


def _values(anew: Iterable[ItemValue], counting: Iterable[Said]) -> dict[str, tuple[str, ...]]:
    """Return by key the values of the typed constraints that bind whoever goes on."""
    values: dict[str, dict[str, None]] = {}
    for value in (*anew, *(said.value for said in counting)):
        if isinstance(value, Constraint) and value.key is not None and value.value is not None:
            values.setdefault(value.key, {})[value.value] = None
    return {key: tuple(found) for key, found in values.items()}


def _sources(said: Iterable[Said]) -> tuple[Carried, ...]:
    return tuple(dict.fromkeys(one.source for one in said if one.source is not None))


def _revisited(state: SessionState) -> tuple[ContentId, ...]:
    return tuple(dict.fromkeys(one.item for one in _sources(revisit.said for revisit in state.revisit)))


def _in_flight(state: SessionState) -> tuple[HandoffId, ...]:
    return tuple(child.handoff for child in state.in_flight)
