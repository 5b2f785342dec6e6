"""Drift: how like its baseline each agent works, week by week, the differences in words, and who is in alarm."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from batonpass.drift.change import DriftChange, find_changes
from batonpass.drift.drift import AgentDrift, DaySpan, DriftQuestion, DriftReport, DriftWindow
from batonpass.drift.evidence import find_evidence
from batonpass.drift.report.drift_text import side_by_side, title_of, told_index
from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import AgentId
from batonpass.server.page.request import PageRequest, Shown

WEEKS: Final = (6, 12, 26)
MOST_AGENTS: Final = 24
_ONE_DAY: Final = timedelta(days=1)


class WeekAgainstWeek(Struct, frozen=True, kw_only=True):
    """One agent at one kind of task: its windows, and the last one against the one before."""

    drift: AgentDrift
    title: str
    last: DriftWindow | None
    before: DriftWindow | None
    changes: Sequence[DriftChange]  # of the last window against the one before
    rows: Sequence[tuple[str, str, str]]  # of the last window against the baseline


def list_drift(asked: PageRequest) -> Shown:
    """Return every agent, those in alarm first."""
    state, report, shown = _report(asked, None)
    told = [_told(one) for one in report.agents[:MOST_AGENTS]]
    return {**shown, "state": state, "report": report, "told": told, "agent": None, "more": report.agents[MOST_AGENTS:]}


def show_drift(asked: PageRequest) -> Shown:
    """Return one agent: the same, with the first handoff that shows each change."""
    agent = AgentId(asked.names["agent"])
    state, report, shown = _report(asked, agent)
    with asked.looking() as view:
        report = find_evidence(view, report)
    return {
        **shown,
        "state": state,
        "report": report,
        "told": [_told(one) for one in report.agents[:MOST_AGENTS]],
        "agent": agent,
        "more": report.agents[MOST_AGENTS:],
    }


def _report(asked: PageRequest, agent: AgentId | None) -> tuple[object, DriftReport, Shown]:
    given = asked.asked("weeks") or str(WEEKS[0])
    if given not in {str(weeks) for weeks in WEEKS}:
        raise InvalidValueError("weeks", f"is one of {', '.join(map(str, WEEKS))}, not {shorten(given)}")
    today = asked.now.date()
    span = DaySpan(first=today - timedelta(weeks=int(given)) + _ONE_DAY, last=today)
    state = asked.counts.bring_up()
    with asked.looking() as view:
        report = asked.counts.report(view, DriftQuestion(span=span, agent=agent))
    return state, report, {"weeks": int(given), "all_weeks": WEEKS, "index_words": told_index}


def _told(drift: AgentDrift) -> WeekAgainstWeek:
    last = drift.windows[-1] if drift.windows else None
    before = drift.windows[-2] if len(drift.windows) > 1 else None
    return WeekAgainstWeek(
        drift=drift,
        title=title_of(drift),
        last=last,
        before=before,
        changes=[] if last is None or before is None else find_changes(before.counts, last.counts),
        rows=[] if last is None else [row for row in side_by_side(drift, last) if row[1] != row[2]],
    )
