"""What people mean by a session: its id or the end of it, a root of it, the name of a series, or the last."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from batonpass.audit.lookup import LAST, Tasks, ending, telling_length
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.bodies import Body, RunStarted, SessionResumed
from batonpass.model.ids import RUN, SESSION, RunId, SessionId, StreamId
from batonpass.model.run import Run
from batonpass.model.session import Stop, root_of, session_of
from batonpass.store.port import LedgerView
from batonpass.wire.codec import decode_receipt

_SHOWN: Final = 5
_LONGEST_NAME: Final = 64


def get_session(view: LedgerView, given: str) -> SessionId:
    """Return the session that is meant. Raises `NotFoundError` or `AmbiguousIdError`."""
    wanted = given.strip().removeprefix("…")
    found = list(dict.fromkeys(islice(_find(view, wanted), _SHOWN + 1))) if wanted else []
    if not found:
        raise NotFoundError("session", given)
    if len(found) > 1:
        raise AmbiguousIdError("session", given, tuple(_lines(view, found[:_SHOWN])))
    return found[0]


def find_roots(view: LedgerView, session: SessionId) -> list[Run]:
    """Return the roots of a session, the oldest first."""
    named = [run for run in view.find_runs(session=session) if run.parent is None]
    try:
        alone = view.get_run(root_of(session))
    except NotFoundError:
        return named[::-1]
    # The first of them may have had no session of its own, until somebody went on where it stopped.
    own = alone.parent is None and alone.session is None
    return [*([alone] if own else []), *named[::-1]]


def find_stops(view: LedgerView, roots: Sequence[Run]) -> list[Stop]:
    """Return where a session stopped: at roots that nobody continues, or that wrote on since. The oldest first."""
    known: dict[RunId, int] = {}
    for root in roots:
        for run, seq in _continued(view, root.id):
            known[run] = max(known.get(run, 0), seq)
    stops = [Stop(root.id, known.get(root.id, 0)) for root in roots]
    last = next((stop for stop in reversed(stops) if stop.after == 0), stops[-1])
    # The one that nobody continues comes last: it is what the others were continued by.
    wrote_on = [stop for stop in stops if stop != last and _wrote_on(view, stop)]
    return [*wrote_on, last]


def find_sessions(view: LedgerView) -> Iterator[tuple[SessionId, list[Run]]]:
    """Yield the sessions that there are with their roots, the latest first."""
    seen: set[SessionId] = set()
    for run in view.find_runs():
        if run.parent is None and (session := session_of(run)) not in seen:
            seen.add(session)
            yield session, find_roots(view, session)


def before(view: LedgerView, root: RunId) -> list[Stop]:
    """Return the roots that a root goes on from; none for one that began anew."""
    return [Stop(run) for run, _ in _continued(view, root)]


def _continued(view: LedgerView, root: RunId) -> list[tuple[RunId, int]]:
    """Return the roots that a root goes on from, and where they stood then, as far as it says."""
    bodies = [*islice(_first_bodies(view, root), 2)]
    resumed = next((body for body in bodies if isinstance(body, SessionResumed)), None)
    if resumed is not None:
        return [(head.run, head.seq) for head in resumed.roots]
    begun = next((body for body in bodies if isinstance(body, RunStarted)), None)
    # What was imported says which root it continues, and not where that stood: it was over.
    return [] if begun is None or begun.continues is None else [(begun.continues, 2**53)]


def _first_bodies(view: LedgerView, root: RunId) -> Iterator[Body]:
    for seq in (1, 2):
        try:
            yield decode_receipt(view.get_receipt_at(StreamId(root), seq).payload).body
        except NotFoundError:
            return


def _wrote_on(view: LedgerView, stop: Stop) -> bool:
    return view.get_stream(StreamId(stop.root)).seq > stop.after


def _find(view: LedgerView, wanted: str) -> Iterator[SessionId]:
    if wanted == LAST:
        yield from (session_of(run) for run in islice((run for run in view.find_runs() if run.parent is None), 1))
        return
    named = islice(view.find_runs(series=wanted), 1) if len(wanted) <= _LONGEST_NAME else ()
    # A whole name is meant as one, also where the random end of an id happens to spell it.
    if series := [session_of(run) for run in named]:
        yield from series
        return
    ended = wanted.lower()
    yield from map(SessionId, view.find_ids(SESSION, ended))
    # A root that nobody gave a session is one by itself, under its own last characters.
    tail = ended.partition("_")[2] if ended.startswith(f"{SESSION}_") else ended
    roots = (view.get_run(RunId(run)) for run in islice(view.find_ids(RUN, tail), _SHOWN + 1) if tail)
    yield from (session_of(run) for run in roots if run.parent is None)


def _lines(view: LedgerView, sessions: Iterable[SessionId]) -> Iterator[str]:
    tasks, known = Tasks(view), list(sessions)
    length = telling_length(known)
    for session in known:
        root = find_roots(view, session)[-1]
        yield f"{ending(session, length)} · {root.agent} · {tasks.first_line(root)}"
