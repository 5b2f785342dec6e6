"""Tasks: the roots, newest first; and handoffs in a state, newest first."""

from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlencode

from batonpass.accounts.overview.tree_outline import is_over
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import AgentId, HandoffId, RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import RunState
from batonpass.records.lineage import Tasks
from batonpass.server.page.request import PageRequest, Shown
from batonpass.server.page.views.now import line_of

Member = TypeVar("Member", bound=StrEnum)

PAGE: Final = 40
_MOST_COUNTED: Final = 200


def list_tasks(asked: PageRequest) -> Shown:
    """Return the tasks of people, newest first."""
    series, state, before = asked.asked("series"), asked.asked("state"), asked.asked("before")
    states = (_member(RunState, state),) if state else ()
    with asked.looking() as view:
        tasks = Tasks(view)
        found = [
            *view.find_runs(
                roots=True,
                series=series or None,
                states=states,
                before=RunId(before) if before else None,
                limit=PAGE + 1,
            )
        ]
        rows = []
        for run in found[:PAGE]:
            text = tasks.find(run)
            handoffs = [one.state for one in view.find_handoffs(root=run.id, limit=_MOST_COUNTED)]
            open_ones = sum(1 for one in handoffs if not is_over(one))
            failed = sum(1 for one in handoffs if one in {State.FAILED, State.REFUTED})
            held = sum(1 for one in handoffs if one in {State.HELD, State.ASKED})
            rows.append(
                {
                    "run": run,
                    "words": "" if text is None else text.words or f"the words are {text.found}",
                    "handoffs": len(handoffs),
                    "is_cut": len(handoffs) == _MOST_COUNTED,
                    "open": open_ones - held,
                    "failed": failed,
                    "held": held,
                }
            )
    return {
        "rows": rows,
        "series": series,
        "state": state,
        "states": [one.value for one in RunState],
        "next": _next(asked, found[PAGE - 1].id) if len(found) > PAGE else None,
        "is_first": not before,
    }


def list_handoffs(asked: PageRequest) -> Shown:
    """Return handoffs in a state or to an agent, newest first."""
    state, to, before = asked.asked("state"), asked.asked("to"), asked.asked("before")
    with asked.looking() as view:
        found = [
            *view.find_handoffs(
                states=(_member(State, state),) if state else (),
                to=AgentId(to) if to else None,
                before=HandoffId(before) if before else None,
                limit=PAGE + 1,
            )
        ]
        lines = [line_of(view, one) for one in found[:PAGE]]
    return {
        "lines": lines,
        "state": state,
        "to": to,
        "states": [one.value for one in State],
        "next": _next(asked, found[PAGE - 1].id) if len(found) > PAGE else None,
        "is_first": not before,
    }


def _member(kind: type[Member], given: str) -> Member:
    try:
        return kind(given)
    except ValueError:
        raise InvalidValueError("state", f"is one of {', '.join(kind)}") from None


def _next(asked: PageRequest, last: str) -> str:
    return f"{asked.path}?{urlencode({**asked.query, 'before': last})}"
