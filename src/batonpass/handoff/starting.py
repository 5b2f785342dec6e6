"""Starting a root run, and going on with one whose process is gone."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from batonpass.errors import HandoffEndedError, InvalidValueError
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.offers import author_of, read_items, read_offer, read_report, read_report_of, statement_item
from batonpass.handoff.outcomes import DELIVERED, learn
from batonpass.handoff.resuming import read_resumption, read_runs
from batonpass.model.bodies import (
    Carried,
    HandoffInitiated,
    Kind,
    Part,
    RunRecorded,
    RunRelaxed,
    RunStarted,
    VerificationPassed,
)
from batonpass.model.checks import require_text
from batonpass.model.content import Content
from batonpass.model.ids import ContentId, HandoffId, PrincipalId, RunId, SessionId, StreamId
from batonpass.model.items import Item, ItemValue, Statement, WorkItem
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Mode, Receipt, StoredReceipt
from batonpass.model.run import Handoff, Run, RunState
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

_LATEST: Final = 64

Lasting: TypeAlias = tuple[ItemValue, PrincipalId]  # what outlives a session, and who said it


def start_run(
    desk: Desk,
    intent: str,
    *,
    by: str,
    agent: str = "lead",
    said: Sequence[ItemValue] = (),
    continues: RunId | None = None,
    series: str | None = None,
    mode: Mode = Mode.OBSERVED,
    session: SessionId | None = None,
    contents: tuple[Content, ...] = (),
) -> Holding:
    """Begin a root run: the human's words, and what they say besides, in one commit."""
    require_text("intent", intent)
    principal = PrincipalId(by)
    if continues is None and series is not None:
        continues = _last_of(desk, series)
    told = dict.fromkeys(said, principal)
    for value, author in () if continues is None else _from_last_time(desk, continues):
        # Whoever decided or asked it last time is its author still; what is said again every time is said once.
        told.setdefault(value, author)
    secret = desk.secrets.new()
    noted = [desk.item(value, author, number) for number, (value, author) in enumerate(told.items(), 1)]
    working = desk.recording.start(
        intent,
        agent=agent,
        by=by,
        mode=mode,
        session=session,
        continues=continues,
        series=series,
        contents=(secret, *contents),
        items=tuple((item.part, content) for item, content in noted),
    )
    desk.secrets.keep(working.run.root, secret.body)
    holding = Holding(working=working)
    holding.add(*(item for item, _ in noted))
    return holding


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
        holding = Holding(working=working, resumed=True)
        reported = remember(view, holding)
    for handoff in sorted(holding.handed_off):
        learn(desk, holding, handoff)
    holding.watched -= reported
    return holding


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
    else:
        holding.resumption = read_runs(view, [run], StreamId(run.id))
    noted: list[Carried] = []
    reported: set[HandoffId] = set()
    for receipt in map(_decoded, view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))):
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
    holding.add(*items)
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


def _from_last_time(desk: Desk, root: RunId) -> Iterator[Lasting]:
    """Yield what outlives a session: decisions with their reasons, open questions, and outputs that were verified.

    Hypotheses, reasoning and what came from outside do not: they are to be worked out, or fetched, anew.
    """
    with desk.store.view() as view:
        lead = view.get_run(root)
        runs = list(view.find_runs(root=root))[::-1]
        handoffs = [*view.find_handoffs(root=root)][::-1]
        verified = {handoff.id for handoff in handoffs if handoff.state is State.VERIFIED}
        for run in runs:
            for item in _lasting_notes(view, run):
                value = item.value
                if isinstance(value, WorkItem) and (not value.verified or value.evidence in verified):
                    continue  # nobody verified it, or its own handoff says so below
                if value is not None and not isinstance(value, Statement):
                    yield value, item.by
        for handoff in handoffs:
            yield from _lasting_results(view, handoff)
        if (report := read_report_of(view, root)) is not None:
            lasting: tuple[ItemValue, ...] = (*report.open_questions, *report.decisions)
            yield from ((value, author_of(lead.agent)) for value in lasting)


def _lasting_notes(view: LedgerView, run: Run) -> tuple[Item, ...]:
    lasting = {Part.DECISION, Part.QUESTION, Part.CONSTRAINT, Part.EXCLUSION, Part.COMPLETED}
    refs = [
        item
        for receipt in map(_decoded, view.find_receipts(ReceiptQuery(stream=StreamId(run.id), kind="run.recorded")))
        if isinstance(receipt.body, RunRecorded)
        for item in receipt.body.items
        if item.part in lasting and (run.parent is None or item.part in {Part.DECISION, Part.QUESTION})
    ]
    contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])}
    items, _ = read_items(view, refs, contents)
    return items


def _lasting_results(view: LedgerView, handoff: Handoff) -> Iterator[Lasting]:
    author = author_of(handoff.to)
    report = None if handoff.state is State.RUNNING else read_report(view, handoff)
    if handoff.state is State.VERIFIED:
        verdict = _verdict(view, handoff)
        yield (
            WorkItem(
                read_offer(view, handoff).baton.task,
                outputs=() if report is None or not report.result.strip() else (report.result,),
                verified_by=verdict.by,
                how=f"{verdict.method}, see {handoff.id}",
                evidence=handoff.id,
            ),
            verdict.by,
        )
    if report is not None:
        # What a failed attempt left open is open still; what it decided fell with it.
        yield from ((question, author) for question in report.open_questions)
        if handoff.state in DELIVERED:
            yield from ((decision, author) for decision in report.decisions)


def _verdict(view: LedgerView, handoff: Handoff) -> VerificationPassed:
    found = view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.VERIFICATION_PASSED))
    bodies = [body for stored in found if isinstance(body := _decoded(stored).body, VerificationPassed)]
    if not bodies:
        raise InvalidValueError("handoff", f"{handoff.id} has no verdict; run `batonpass ledger verify`")
    return bodies[-1]
