"""The ids and names in a ledger, the latest first, as shell completion offers them: the word, and its description."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from batonpass.audit.short_ids import LAST, ending
from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN, SESSION, ReceiptId
from batonpass.model.baton.session import session_of
from batonpass.records.lineage import Tasks, read_task
from batonpass.store.port import LedgerView

_MOST: Final = 50
_LENGTH: Final = 6

Known = tuple[str, str]


def find_known(view: LedgerView, kinds: Sequence[str]) -> Iterator[Known]:
    """Yield `last`, then for each kind the endings of the latest ids and the names that match them."""
    yield LAST, "the last one"
    for kind in kinds:
        yield from _FINDERS[kind](view)


def find_agents(view: LedgerView) -> Iterator[Known]:
    """Yield the names of the agents that worked most recently, each once."""
    tasks, seen = Tasks(view), set[str]()
    for run in islice(view.find_runs(), 10 * _MOST):
        if run.agent not in seen:
            seen.add(run.agent)
            yield run.agent, tasks.first_line(run)


def _runs(view: LedgerView) -> Iterator[Known]:
    tasks = Tasks(view)
    for run in islice(view.find_runs(), _MOST):
        yield ending(run.id, _LENGTH), f"run of {run.agent} · {run.state} · {tasks.first_line(run)}"
    yield from find_agents(view)


def _handoffs(view: LedgerView) -> Iterator[Known]:
    names: dict[str, str] = {}
    for handoff in islice(view.find_handoffs(), _MOST):
        task = read_task(view, handoff)
        words = "unknown" if task is None else task.first_line
        yield ending(handoff.id, _LENGTH), f"handoff to {handoff.to} · {handoff.state} · {words}"
        names.setdefault(handoff.to, words)
    yield from names.items()


def _sessions(view: LedgerView) -> Iterator[Known]:
    tasks, series = Tasks(view), dict[str, str]()
    for run in islice((run for run in view.find_runs() if run.parent is None), _MOST):
        yield ending(session_of(run), _LENGTH), f"session of {run.agent} · {tasks.first_line(run)}"
        if run.series is not None:
            series.setdefault(run.series, f"series · {tasks.first_line(run)}")
    yield from series.items()


def _receipts(view: LedgerView) -> Iterator[Known]:
    for found in islice(view.find_ids(RECEIPT, ""), _MOST):
        yield ending(found, _LENGTH), f"receipt {view.get_receipt(ReceiptId(found)).kind}"


def _calls(view: LedgerView) -> Iterator[Known]:
    for held in view.find_waiting_calls():
        yield ending(held.call, _LENGTH), f"call of {view.get_run(held.run).agent} that waits"


_FINDERS: Final[Mapping[str, Callable[[LedgerView], Iterator[Known]]]] = {
    RUN: _runs,
    HANDOFF: _handoffs,
    SESSION: _sessions,
    RECEIPT: _receipts,
    CALL: _calls,
}
