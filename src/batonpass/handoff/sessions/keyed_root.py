"""Root runs with a key: the same key is the same run, for every process, and after a crash.

A handoff has its key in a row of its own. A root run has none, so its key is a content of its first receipt whose id is
made from the key. A store takes an id only once, so of two processes that start at the same moment one is refused.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from batonpass.errors import DuplicateReceiptError, KeyReusedError, NotFoundError
from batonpass.handoff.history.past_calls import read_runs
from batonpass.handoff.runtime.bounds import read_bounds
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.resume import remember, resume_run
from batonpass.ledger.position import Working
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import INTENT, KEY
from batonpass.model.base.ids import ContentId, RunId, StreamId, content_named
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView

# The run is not over: it goes on from its record.
_UNFINISHED: Final = frozenset({RunState.OPEN, RunState.SUSPENDED})
_GENERATIONS: Final = 1000

# Starts the run, with the key among its contents, after the failed run that had the key before.
Start = Callable[[tuple[Content, ...], RunId | None], Holding]


def start_once(desk: Desk, key: str, *, intent: str, by: str, agent: str, start: Start) -> Holding:
    """Start a root run, or return the one that this agent was given under this key.

    A completed one only replays its record. One that is not over is resumed, and a process that still holds it is
    fenced. One that failed or was cancelled is over, and frees its key: the new run continues it. Raises
    `KeyReusedError` if the key was used for other words or for another principal.
    """
    require_text("key", key)
    before: RunId | None = None
    for generation in range(_GENERATIONS):
        name = name_of_key(agent, key, generation)
        known = _find_root(desk, name)
        if known is None:
            content = desk.text(KEY, key)
            try:
                return start((replace(content, ref=replace(content.ref, id=name)),), before)
            except DuplicateReceiptError:
                # Somebody else was faster. If nobody was, the id of something else was taken.
                if (known := _find_root(desk, name)) is None:
                    raise
        _require_same(desk, known, intent=intent, by=by)
        if known.state in _UNFINISHED:
            return resume_run(desk, known.id)
        if known.state is RunState.COMPLETED:
            return replay_root(desk, known.id)
        before = known.id
    raise NotFoundError("free key", key)


def find_keyed(desk: Desk, agent: str, key: str) -> Run | None:
    """Return the first root run that an agent was given under a key; None if there is none."""
    return _find_root(desk, name_of_key(agent, key))


def name_of_key(agent: str, key: str, generation: int = 0) -> ContentId:
    """Return the id that stands for a key of an agent. Each failed run makes room for the next generation."""
    return content_named("\n".join(("key of a root run", agent, str(generation), key)))


def replay_root(desk: Desk, run: RunId) -> Holding:
    """Return a root run that is over as one that only replays its record, and does nothing."""
    desk.secrets.fetch(run)
    with desk.store.view() as view:
        known = view.get_run(run)
        holding = Holding(working=Working(run=known), bounds=read_bounds(view, known), replaying=True)
        remember(view, holding)
        holding.resumption = read_runs(view, [known], StreamId(run))
    return holding


def _find_root(desk: Desk, name: ContentId) -> Run | None:
    with desk.store.view() as view:
        try:
            introduced = view.get_content(name).receipt
        except NotFoundError:
            return None
        if introduced is None:
            return None  # a content without its receipt: no commit of ours leaves that
        return view.get_run(RunId(read_receipt(view.get_receipt(introduced)).stream))


def _require_same(desk: Desk, known: Run, *, intent: str, by: str) -> None:
    """Raise `KeyReusedError` unless the run was started for the same principal with the same words."""
    with desk.store.view() as view:
        differences = tuple(_differences(view, known, intent, by))
    if differences:
        raise KeyReusedError(known.id, differences)


def _differences(view: LedgerView, known: Run, intent: str, by: str) -> list[str]:
    found = [] if known.principal == by else [f"by ({known.principal}, not {by})"]
    ref = read_receipt(view.get_receipt_at(StreamId(known.id), 1)).content.get(INTENT)
    words = None if ref is None else view.get_content(ref.id).body
    # Words that were erased cannot be compared. Whoever has the key knows what it was for.
    if words is not None and words.decode("utf-8", "replace") != intent:
        found.append("what is asked for")
    return found
