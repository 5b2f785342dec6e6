"""The roots of a session, where it stopped, and the roots that each of them continues."""

from collections.abc import Iterator, Sequence
from itertools import islice

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import RunId, SessionId, StreamId
from batonpass.model.baton.session import Stop, root_of, session_of
from batonpass.model.bodies.body import Body, RunStarted, SessionResumed
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt


def find_roots(view: LedgerView, session: SessionId) -> list[Run]:
    """Return the roots of a session, the oldest first."""
    named = list(view.find_runs(session=session, roots=True))
    try:
        alone = view.get_run(root_of(session))
    except NotFoundError:
        return named[::-1]
    # The first root may have had no session until somebody resumed it.
    own = alone.parent is None and alone.session is None
    return [*([alone] if own else []), *named[::-1]]


def find_stops(view: LedgerView, roots: Sequence[Run]) -> list[Stop]:
    """Return where a session stopped: at roots that nobody continued, or that wrote more since. The oldest first."""
    known: dict[RunId, int] = {}
    for root in roots:
        for run, seq in _continued(view, root.id):
            known[run] = max(known.get(run, 0), seq)
    stops = [Stop(root.id, known.get(root.id, 0)) for root in roots]
    last = next((stop for stop in reversed(stops) if stop.after == 0), stops[-1])
    # The root that nobody continued comes last: it continues the others.
    wrote_on = [stop for stop in stops if stop != last and _wrote_on(view, stop)]
    return [*wrote_on, last]


def find_sessions(view: LedgerView) -> Iterator[tuple[SessionId, list[Run]]]:
    """Yield all sessions with their roots, the latest first."""
    seen: set[SessionId] = set()
    for run in view.find_runs(roots=True):
        if (session := session_of(run)) not in seen:
            seen.add(session)
            yield session, find_roots(view, session)


def before(view: LedgerView, root: RunId) -> list[Stop]:
    """Return the roots that a root continues; none if it started afresh."""
    return [Stop(run) for run, _ in _continued(view, root)]


def _continued(view: LedgerView, root: RunId) -> list[tuple[RunId, int]]:
    """Return the roots that a root continues, and their last seq then, if known."""
    bodies = [*islice(_first_bodies(view, root), 2)]
    resumed = next((body for body in bodies if isinstance(body, SessionResumed)), None)
    if resumed is not None:
        return [(head.run, head.seq) for head in resumed.roots]
    begun = next((body for body in bodies if isinstance(body, RunStarted)), None)
    # An imported root does not say how far the one before it had come; that one was over.
    return [] if begun is None or begun.continues is None else [(begun.continues, 2**53)]


def _first_bodies(view: LedgerView, root: RunId) -> Iterator[Body]:
    for seq in (1, 2):
        try:
            yield decode_receipt(view.get_receipt_at(StreamId(root), seq).payload).body
        except NotFoundError:
            return


def _wrote_on(view: LedgerView, stop: Stop) -> bool:
    return view.get_stream(StreamId(stop.root)).seq > stop.after
