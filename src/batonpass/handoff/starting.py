"""Starting a root run, and going on with one whose process is gone."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from batonpass.audit.meant import get_session
from batonpass.audit.sessions import find_roots, find_stops
from batonpass.errors import HandoffEndedError, InvalidValueError, NotFoundError
from batonpass.handoff.bounds import bounds_of_root, read_bounds, read_terms
from batonpass.handoff.calls.limits import require_unrevoked
from batonpass.handoff.calls.past_calls import read_resumption, read_runs
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.remembering import is_memory
from batonpass.handoff.sessions import carried_from, find_said_outside, inherit, read_session, resumed
from batonpass.handoff.tables import has_ended, held_root
from batonpass.handoff.transfer.accept import taint_of
from batonpass.handoff.transfer.grant_terms import Beginning, regrant
from batonpass.handoff.transfer.read_offer import read_items, read_offer, statement_item
from batonpass.handoff.transfer.result import learn
from batonpass.handoff.transfer.taint_received import take_receipt
from batonpass.ledger.standing import Working
from batonpass.model.bodies import (
    Carried,
    HandoffInitiated,
    Part,
    RunRecorded,
    RunRelaxed,
    RunStarted,
    SessionResumed,
)
from batonpass.model.checks import require_text
from batonpass.model.content import Content
from batonpass.model.grant import Grant
from batonpass.model.ids import AgentId, ContentId, HandoffId, PrincipalId, RunId, SessionId, StreamId
from batonpass.model.items import Item, ItemValue
from batonpass.model.label import Label, SourceType, named_sources
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Mode, Receipt, StoredReceipt
from batonpass.model.run import RunState
from batonpass.model.session import NO_SESSION, SessionState, Stop
from batonpass.records.call import read_calls
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

_LATEST: Final = 64


def start_run(
    desk: Desk,
    intent: str | None,
    *,
    by: str,
    agent: str = "lead",
    said: Sequence[ItemValue] = (),
    continues: RunId | None = None,
    series: str | None = None,
    mode: Mode | None = None,
    session: SessionId | None = None,
    contents: tuple[Content, ...] = (),
    resumes: Sequence[Stop] = (),
    labelled: bool = True,
    grant: Grant | None = None,
) -> Holding:
    """Begin a root run: the human's words, unless nobody heard them, and what they say besides, in one commit.

    What comes along is that of the roots that a session stopped at, of a root that is continued, or of the last one of
    a series. Whoever records what another program did, and cannot tell what reached it, says nothing of labels. With a
    grant, its own or that of its agent's table, it is enforced, unless that is only to be tried out.
    """
    if intent is not None:
        require_text("intent", intent)
    principal = PrincipalId(by)
    if not resumes and continues is None and series is not None:
        continues = _last_of(desk, series)
    stops = tuple(resumes) or (() if continues is None else (Stop(continues),))
    resumed_session = session if resumes else None
    state, heads = inherit(desk, stops, session=resumed_session, anew=said) if stops else (NO_SESSION, ())
    outside = find_said_outside(desk, state) if stops and labelled else frozenset()
    now = desk.clock.now()
    told = dict.fromkeys(said, (principal, now))
    for one in carried_from(state, now):
        # Whoever decided or asked it last time is its author still; what is said again every time is said once.
        told.setdefault(one.value, (one.by, one.at))
    secret = desk.secrets.new()
    last = stops[-1].root if stops else None
    shared = _shared_secret(desk, last, session)
    noted = [
        desk.item(value, author, number, said_at=at) for number, (value, (author, at)) in enumerate(told.items(), 1)
    ]
    tainted = [item for item, _ in noted if item.value in outside]
    kept = partial(resumed, state=state, heads=heads, outside=[item.id for item in tainted])
    held, mode = held_root(desk, AgentId(agent), grant, mode)
    beginning = None if held is None else Beginning(desk, held, AgentId(agent), principal)
    working = desk.recording.start(
        intent,
        agent=agent,
        by=by,
        mode=mode,
        session=session,
        continues=last,
        series=series,
        policy=desk.gates.digest,
        label=Label(SourceType.USER_INPUT) if labelled else None,
        contents=(secret, *shared, *contents),
        items=tuple((item.part, content) for item, content in noted if item not in tainted),
        items_label=_label_of([item for item, _ in noted if item not in tainted]) if labelled else None,
        items_from_outside=tuple((item.part, content) for item, content in noted if item in tainted),
        resumed=kept if stops else None,
        granting=beginning,
    )
    desk.secrets.keep(working.run.root, secret.body, shared[0].body if shared else None)
    bounds = bounds_of_root(working.run.id, None if beginning is None else beginning.terms, mode)
    holding = Holding(working=working, session=state, bounds=bounds)
    holding.add(*(item for item, _ in noted))
    holding.taint.enter(named_sources(working.run.id, (item.id for item in tainted)), None)
    return holding


def _label_of(items: Sequence[Item]) -> Label:
    """Return the label of what comes along: the principal's own words, or those of agents as well."""
    agents = any(item.by.startswith("agent:") for item in items)
    return Label(SourceType.LLM_GENERATED if agents else SourceType.USER_INPUT)


def _shared_secret(desk: Desk, last: RunId | None, session: SessionId | None) -> tuple[Content, ...]:
    """Return what a root shares with the trees before it, so that their results are found again."""
    if last is None and session is not None:
        with desk.store.view() as view:
            last = next((run.root for run in view.find_runs(session=session)), None)
    return () if last is None else (desk.secrets.pass_on(last),)


def resume_run(desk: Desk, run: RunId, *, mode: Mode | None = None) -> Holding:
    """Go on with an open run whose process is gone; whoever still holds it is fenced."""
    with desk.store.view() as view:
        known = view.get_run(run)
        if known.state is not RunState.OPEN:
            raise HandoffEndedError(run, known.state)
        first = decode_receipt(view.get_receipt_at(StreamId(run), 1).payload)
    desk.secrets.fetch(known.root)
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
    """Return an open run of another program, which another process recorded until now.

    The program goes on where it is: nothing of what it did is given to it again, and a held call does not end it. With
    a grant it is enforced to its end, however it is recorded now.
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
    """Begin a root where a session stopped; what nobody says anew, its agent and its words, is as it was last.

    It is held to the grant that its last root had. Raises `NotFoundError` or `AmbiguousIdError`, `InvalidValueError` if
    the words were erased, and `GrantExpiredError` or `GrantRevokedError` if that grant has ended.
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
            terms = None  # it was only tried out, and there is nothing left to try
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
        # Only whoever starts anew may ask for more.
        grant=None if terms is None else regrant(terms.said),
    )


def _began_with(view: LedgerView, run: RunId, at: datetime) -> SessionState:
    """Return what a root began with, as it looks now."""
    # It may be the first receipt still, and where a tree was brought alone, those that it comes from are not there.
    with suppress(NotFoundError):
        body = _decoded(view.get_receipt_at(StreamId(run), 2)).body
        if isinstance(body, SessionResumed):
            return read_session(view, [Stop(root.run) for root in body.roots], at, session=body.resumes)
    return NO_SESSION


def remember(view: LedgerView, holding: Holding) -> frozenset[HandoffId]:
    """Fill in what a run knew, from receipts: its baton, what it noted and handed off, and what it did.

    Returns the unverified results of which it has said already that it goes on with them.
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
    for receipt in map(_decoded, view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))):
        take_receipt(holding.taint, receipt)
        match receipt.body:
            case RunRecorded() as body:
                noted += [item for item in body.items if item.part is not Part.INTENT]
            case RunRelaxed() as body:
                holding.relaxed.add(body.item)
            case HandoffInitiated() as body:
                holding.handed_off.add(body.handoff)
                reported.update(body.unverified)
            case _:
                continue
    contents = {content.id: content for content in view.find_contents([ref.item for ref in noted])}
    items, _ = read_items(view, noted, contents)
    holding.add(*(item for item in items if not is_memory(item)))
    return frozenset(reported)


def find_statements(view: LedgerView, root: RunId, known: dict[ContentId, Item]) -> Iterator[Item]:
    """Yield all that humans said in a tree so far; words that are at hand are not read again."""
    stated = list(view.find_statements(root))
    unread = [statement.item for statement in stated if statement.item not in known]
    contents = {content.id: content for content in view.find_contents(unread)} if unread else {}
    for statement in stated:
        yield known.get(statement.item) or statement_item(statement, contents.get(statement.item))


def _decoded(stored: StoredReceipt) -> Receipt:
    return decode_receipt(stored.payload)


def _last_of(desk: Desk, series: str) -> RunId | None:
    """Return the root of a series that none of the latest ones continues: ids follow clocks, and clocks differ."""
    with desk.store.view() as view:
        runs = [run.id for run in islice(view.find_runs(series=series), _LATEST)]
        begun = [_decoded(view.get_receipt_at(StreamId(run), 1)).body for run in runs]
    continued = {body.continues for body in begun if isinstance(body, RunStarted)}
    return next((run for run in runs if run not in continued), None)
