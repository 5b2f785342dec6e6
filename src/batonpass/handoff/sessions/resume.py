"""Resuming a run whose process is gone, or a session that stopped. All knowledge is read back from receipts."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from batonpass.audit.meant_ids import get_session
from batonpass.audit.session_roots import find_roots, find_stops
from batonpass.errors import HandoffEndedError, InvalidValueError, NotFoundError
from batonpass.handoff.grants.limit_use import require_unrevoked
from batonpass.handoff.grants.policy_tables import has_ended
from batonpass.handoff.grants.terms import regrant
from batonpass.handoff.history.offers import read_items, read_offer
from batonpass.handoff.history.past_calls import read_resumption, read_runs
from batonpass.handoff.runtime.bounds import bounds_of_root, read_bounds, read_terms
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.agent_memory import is_memory
from batonpass.handoff.sessions.session_news import find_acknowledged
from batonpass.handoff.sessions.session_state import read_session
from batonpass.handoff.sessions.start import start_run
from batonpass.handoff.taint.intake import take_receipt
from batonpass.handoff.transfer.accept import taint_of
from batonpass.handoff.transfer.result import learn
from batonpass.ledger.position import Working
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import ItemValue
from batonpass.model.baton.session import NO_SESSION, SessionState, Stop
from batonpass.model.bodies.body import (
    Carried,
    HandoffInitiated,
    Part,
    RunAcknowledged,
    RunRecorded,
    RunRelaxed,
    SessionResumed,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import RunState
from batonpass.records.call import read_calls
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt


def resume_run(desk: Desk, run: RunId, *, mode: Mode | None = None) -> Holding:
    """Go on with an open run whose process is gone. A process that still holds it is fenced.

    Raises `HandoffEndedError` if the run is not open.
    """
    with desk.store.view() as view:
        known = view.get_run(run)
        if known.state is not RunState.OPEN:
            raise HandoffEndedError(run, known.state)
        first = decode_receipt(view.get_receipt_at(StreamId(run), 1).payload)
    desk.secrets.fetch(known.root)
    # A new key for the run, before its receipts are read: from here on the old holder can append nothing, so what is
    # read below is complete.
    working = desk.recording.rekey(run, mode=mode or first.mode, session=first.session)
    with desk.store.view() as view:
        began_with = _began_with(view, run, desk.clock.now())
        holding = Holding(working=working, resumed=True, session=began_with, bounds=read_bounds(view, known))
        reported = remember(view, holding)
    for handoff in sorted(holding.handed_off):
        learn(desk, holding, handoff)
    holding.watched -= reported
    return holding


def follow_run(view: LedgerView, working: Working) -> Holding:
    """Return an open run of another program that another process recorded until now.

    The program itself goes on, so no finished call is replayed to it, and a held call does not end it. If it has a
    grant, it stays enforced, whatever the mode of the new recording.
    """
    bounds = read_bounds(view, working.run)
    if bounds.chain and not bounds.tried_out:
        working = replace(working, mode=Mode.ENFORCED)
    holding = Holding(working=working, bounds=bounds, stays_open=True)
    reported = remember(view, holding)
    delivered = view.find_handoffs(parent=working.run.id)
    holding.watched = {child.id for child in delivered if child.state is State.COMPLETED} - reported
    made = [call for call in read_calls(view, working.run).values() if call.is_made]
    holding.keys_made |= {call.key for call in made if call.key is not None}
    holding.effects += [call.id for call in made if not call.reads]
    holding.resumption = replace(holding.resumption, finished=(), in_doubt=())
    return holding


def resume_session(
    desk: Desk,
    session: str,
    *,
    by: str,
    intent: str | None = None,
    agent: str | None = None,
    said: Sequence[ItemValue] = (),
) -> Holding:
    """Start a root run where a session stopped. The agent and the intent are those of the last root, unless given.

    It is held to the grant of the last root. Raises `NotFoundError` and `AmbiguousIdError`, `InvalidValueError` if the
    intent was erased, and `GrantExpiredError` or `GrantRevokedError` if the grant has ended.
    """
    with desk.store.view() as view:
        found = get_session(view, session)
        stops = find_stops(view, find_roots(view, found))
        last = view.get_run(stops[-1].root)
        first = _decoded(view.get_receipt_at(StreamId(last.id), 1))
        terms = read_terms(view, first)
        if terms is not None and first.mode is Mode.ENFORCED:
            require_unrevoked(view, bounds_of_root(last.id, terms, first.mode))
        elif terms is not None and has_ended(terms.said, desk.clock.now()):
            terms = None  # it was only observed, and its time is over
        ref = first.content.get(Part.INTENT)
        words = None if ref is None else view.get_content(ref.id).body
    if intent is None and words is None:
        raise InvalidValueError("intent", "was erased; say what you want")
    return start_run(
        desk,
        (words or b"").decode() if intent is None else intent,
        by=by,
        agent=agent or last.agent,
        said=said,
        series=last.series,
        mode=first.mode,
        session=found,
        resumes=stops,
        # Only a new start may ask for more.
        grant=None if terms is None else regrant(terms.said),
    )


def _began_with(view: LedgerView, run: RunId, at: datetime) -> SessionState:
    """Return the state that a root run started with, as it looks now."""
    # There may be only one receipt yet. And if this tree was imported alone, the trees before it are missing.
    with suppress(NotFoundError):
        body = _decoded(view.get_receipt_at(StreamId(run), 2)).body
        if isinstance(body, SessionResumed):
            return read_session(view, [Stop(root.run) for root in body.roots], at, session=body.resumes)
    return NO_SESSION


def remember(view: LedgerView, holding: Holding) -> frozenset[HandoffId]:
    """Restore the knowledge of a run from receipts: its baton, its items, its handoffs and its calls.

    Returns the handoffs with unverified results that the run has already reported to go on with.
    """
    run = holding.working.run
    if run.handoff is not None:
        handoff = view.get_handoff(run.handoff)
        offer = read_offer(view, handoff)
        holding.baton = offer.baton
        holding.add(*offer.baton.items)
        holding.resumption = read_resumption(view, handoff)
        holding.handed_off.update(child.id for child in holding.resumption.children)
        holding.taint = taint_of(offer, holding.resumption)
    else:
        holding.resumption = read_runs(view, [run], StreamId(run.id))
    noted: list[Carried] = []
    reported: set[HandoffId] = set()
    acknowledged = False
    for receipt in map(_decoded, view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))):
        take_receipt(holding.taint, receipt)
        match receipt.body:
            case RunRecorded() as body:
                noted += [item for item in body.items if item.part is not Part.INTENT]
            case RunRelaxed() as body:
                holding.relaxed.add(body.item)
            case RunAcknowledged():
                acknowledged = True
            case HandoffInitiated() as body:
                holding.handed_off.add(body.handoff)
                reported.update(body.unverified)
            case _:
                continue
    contents = {content.id: content for content in view.find_contents([ref.item for ref in noted])}
    items, _ = read_items(view, noted, contents)
    fallen = find_acknowledged(view, run.id) if acknowledged and run.handoff is None else frozenset()
    holding.add(*(item for item in items if not is_memory(item) and item.id not in fallen))
    return frozenset(reported)


def _decoded(stored: StoredReceipt) -> Receipt:
    return decode_receipt(stored.payload)
