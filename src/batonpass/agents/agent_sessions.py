"""Sessions of native agents: the state that the model of a root run gets beside the user's words.

Nothing of an earlier conversation is shown to a model again. The lasting state is derived from receipts: decisions,
open questions, verified results, unfinished work. So the prompt does not grow with the session, a stale page is not
read twice, every agent of the session is told the same, and a run that died without an end loses nothing.
"""

from itertools import islice
from typing import Final

from batonpass.agents.attempt_input import describe_past
from batonpass.aio import AsyncRun
from batonpass.briefing.session_block import LIMIT, Exchange, tell_session
from batonpass.handoff.history.offers import read_report_of, read_words
from batonpass.handoff.history.past_calls import Resumption, read_runs
from batonpass.model.base.content_names import INTENT, KEY
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.baton.items import Report
from batonpass.model.bodies.body import RunStarted
from batonpass.model.ledger.receipt_taint import is_made_of_outside
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView

MOST_EXCHANGES: Final = 3


def told_besides(run: AsyncRun, store: LedgerStore, words: str = "", *, limit: int | None = LIMIT) -> str:
    """Return the text that the model of a root run gets beside the user's words; empty if there is none."""
    with store.view() as view:
        known = view.get_run(run.id)
        exchanges = [] if known.series is None else _exchanges(view, known.series, known)
        past = _failed_before(view, known) or run.earlier
    return tell_session(
        run.notes,
        beside=words,
        in_flight=run.session.in_flight,
        exchanges=exchanges,
        earlier=describe_past(store, past),
        limit=limit,
    )


def is_in_session(run: AsyncRun) -> bool:
    """Return whether its caller named a session, so that somebody may go on from it."""
    return run.sync._holding.working.session is not None  # noqa: SLF001 - we speak for the run


def read_intent(store: LedgerStore, run: RunId) -> str:
    """Return the words with which a root run was started."""
    with store.view() as view:
        return _intent(view, run)


def read_root_report(store: LedgerStore, run: RunId) -> Report | None:
    """Return the report with which a root run was closed; None if there is none, or if it was erased."""
    with store.view() as view:
        return read_report_of(view, run)


def _intent(view: LedgerView, run: RunId) -> str:
    return read_words(view, read_receipt(view.get_receipt_at(StreamId(run), 1)).content.get(INTENT))


def _failed_before(view: LedgerView, current: Run) -> Resumption | None:
    """Return the calls of a failed run under the same key, in words: they were made, though this run makes its own."""
    first = read_receipt(view.get_receipt_at(StreamId(current.id), 1))
    continues = first.body.continues if isinstance(first.body, RunStarted) else None
    if continues is None or KEY not in first.content:
        return None
    before = read_receipt(view.get_receipt_at(StreamId(continues), 1))
    if read_words(view, before.content.get(KEY)) != read_words(view, first.content[KEY]):
        return None
    return read_runs(view, [view.get_run(continues)], StreamId(continues))


def _exchanges(view: LedgerView, session: str, current: Run) -> list[Exchange]:
    before = (run for run in view.find_runs(series=session) if run.id != current.id and run.parent is None)
    latest = list(islice(before, MOST_EXCHANGES))
    return [_exchange(view, run) for run in reversed(latest)]


def _exchange(view: LedgerView, run: Run) -> Exchange:
    answer, why = None, f"(its run is {run.state})"
    if run.state is RunState.COMPLETED:
        closing = read_receipt(view.get_receipt_at(StreamId(run.id), view.get_stream(StreamId(run.id)).seq))
        report = read_report_of(view, run.id)
        if is_made_of_outside(closing):
            why = "(its answer drew on content from outside: fetch it anew)"
        elif report is None or not report.result.strip():
            why = "(no answer is kept)"
        else:
            answer = report.result
    return Exchange(
        asked=_intent(view, run.id), by=run.principal, at=run.started_at, agent=run.agent, answer=answer, why=why
    )
