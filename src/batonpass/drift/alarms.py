"""Alarms on record: raised when weeks differ from their baseline, acknowledged by a person, cleared when they do not.

A command, a worker or a server checks from time to time; recording never does. A check compares
weeks as `batonpass drift` does, and writes down only new differences, so checking twice changes nothing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from typing import Final

from batonpass.audit.meant_ids import SHORTEST
from batonpass.drift.change import DriftChange
from batonpass.drift.drift import AgentDrift, DayCounts, DaySpan, DriftAlarm, DriftQuestion, DriftReport, find_drift
from batonpass.drift.evidence import find_evidence
from batonpass.drift.rollup import read_weeks
from batonpass.errors import AmbiguousIdError, NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON, TASK_KIND
from batonpass.model.base.ids import HandoffId, PrincipalId
from batonpass.model.bodies.body import AlarmAcknowledged, AlarmCleared, AlarmRaised
from batonpass.records.remarks.alarm import AlarmRecord, find_alarms

LOOKED_BACK: Final = timedelta(weeks=6)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCheck:
    """The receipts that a check of all agents wrote, and the alarms that stand after it."""

    raised: tuple[AlarmRecord, ...]
    cleared: tuple[AlarmRecord, ...]
    standing: tuple[AlarmRecord, ...]


def usual_question(now: datetime) -> DriftQuestion:
    """Return the usual question: the last six weeks, week by week."""
    return DriftQuestion(span=DaySpan(first=(now - LOOKED_BACK).date() + _DAY, last=now.date()))


def check_alarms(desk: Desk) -> AlarmCheck:
    """Compare weeks, raise the alarms that are new and clear those whose cause is over."""
    now = desk.clock.now()
    asked = usual_question(now)
    with desk.store.view() as view:
        open_ones = [one for one in find_alarms(view) if one.cleared_at is None]
    first = min([asked.span.first, *(one.raised.compared_since.date() for one in open_ones)])
    weeks = read_weeks(desk.store, DaySpan(first=first, last=asked.span.last))
    current = [day for day in weeks.days if day.day >= asked.span.first]
    with desk.store.view() as view:
        report = find_evidence(view, find_drift(current, asked), weeks)
        known = {one.key for one in find_alarms(view)}
    over = [(one, why) for one in open_ones if (why := _why_over(one, report, weeks.days)) is not None]
    kept = [one for one in open_ones if all(one is not ended for ended, _ in over)]
    fresh = [one for one in _find_fresh(report, kept) if one.body.alarm not in known]
    for ended, why in over:
        body = AlarmCleared(agent=ended.agent, alarm=ended.key)
        desk.recording.note(body, (desk.text(REASON, why),))
    for new in fresh:
        desk.recording.note(new.body, (desk.text(REASON, new.sentence), desk.text(TASK_KIND, new.task_kind)))
    with desk.store.view() as view:
        after = [*find_alarms(view)]
    keys, ended_keys = {new.body.alarm for new in fresh}, {one.key for one, _ in over}
    return AlarmCheck(
        raised=tuple(one for one in after if one.key in keys),
        cleared=tuple(one for one in after if one.key in ended_keys),
        standing=tuple(one for one in after if one.stands),
    )


def acknowledge_alarm(desk: Desk, alarm: str, *, by: str, reason: str) -> AlarmRecord:
    """Record that a person has seen an alarm and lets the agent go on. Return the alarm.

    Name it by the beginning or the end of its key, or by its agent if that has one. Raises `NotPersonError` if `by` is
    no person, `NotFoundError` if no such alarm stands, and `AmbiguousIdError` if several do.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(alarm, by, act="acknowledge")
    with desk.store.view() as view:
        standing = [one for one in find_alarms(view) if one.stands]
    named = [one for one in standing if len(alarm) >= SHORTEST and _is_named(one, alarm)]
    meant = named or [one for one in standing if one.agent == alarm]
    if not meant:
        raise NotFoundError("alarm", alarm)
    if len(meant) > 1:
        raise AmbiguousIdError("alarm", alarm, tuple(f"{one.key}  {one.sentence or one.cause}" for one in meant))
    body = AlarmAcknowledged(agent=meant[0].agent, alarm=meant[0].key, by=PrincipalId(by))
    desk.recording.note(body, (desk.text(REASON, reason),))
    with desk.store.view() as view:
        return next(one for one in find_alarms(view, meant[0].agent) if one.key == meant[0].key)


def _is_named(one: AlarmRecord, alarm: str) -> bool:
    return one.key.startswith(alarm) or one.key.endswith(alarm)


@dataclass(frozen=True, slots=True)
class _Fresh:
    body: AlarmRaised
    task_kind: str
    sentence: str


def _find_fresh(report: DriftReport, known: Sequence[AlarmRecord]) -> Iterator[_Fresh]:
    """Yield the alarms of a report of which none is on record whose cause is not over."""
    told = {one.subject for one in known}
    for drift in report.agents:
        for alarm in drift.alarms:
            if (drift.agent, drift.task_kind, drift.config or None, alarm.code) not in told:
                yield _fresh(drift, alarm)


def _fresh(drift: AgentDrift, alarm: DriftAlarm) -> _Fresh:
    window = drift.windows[-1].span
    found = _change(drift, alarm)
    first = None if found is None or found.first is None else HandoffId(found.first)
    body = AlarmRaised(
        agent=drift.agent,
        alarm=_key(drift, alarm, window),
        cause=alarm.code,
        window_since=_begin(window),
        window_until=_end(window),
        compared_since=_begin(drift.baseline),
        compared_until=_end(drift.baseline),
        first=first,
        configuration=drift.config or None,
    )
    # Words of handoffs are not repeated here: erasing them there would leave them in this receipt's content.
    return _Fresh(body, drift.task_kind, alarm.plain if first is None else f"{alarm.plain}, first at handoff {first}")


def _change(drift: AgentDrift, alarm: DriftAlarm) -> DriftChange | None:
    """Return the first change that is behind an alarm and has a handoff as evidence."""
    changes = (change for window in drift.windows for change in window.changes if change.topic == alarm.cause)
    return next((change for change in changes if change.first is not None), None)


def _key(drift: AgentDrift, alarm: DriftAlarm, window: DaySpan) -> str:
    named = [drift.agent, drift.task_kind, drift.config, alarm.code, window.last.isoformat()]
    return sha256(json.dumps(named).encode()).hexdigest()[:12]


def _why_over(one: AlarmRecord, report: DriftReport, days: Sequence[DayCounts]) -> str | None:
    """Return why the cause of an alarm is over; None if it is not, or nobody can tell.

    An alarm is held against the baseline with which it was raised, which later weeks do not move. One that a person
    acknowledged is over as well if the usual comparison no longer shows it: it is the new normal then.
    """
    now = next((drift for drift in report.agents if _is_about(drift, one)), None)
    if now is not None and now.is_over:
        return "the agent has another configuration"
    baseline = DaySpan(
        first=one.raised.compared_since.date(), last=(one.raised.compared_until - timedelta(microseconds=1)).date()
    )
    since = baseline.last + _DAY
    if since > report.question.span.last:
        return None
    asked = DriftQuestion(span=DaySpan(first=since, last=report.question.span.last), baseline=baseline)
    frozen = next((each for each in find_drift(days, asked).agents if _is_about(each, one)), None)
    if frozen is not None and frozen.windows and not _shows(frozen, one.cause):
        return "the last window is as the baseline was"
    if one.seen is not None and now is not None and now.windows and not _shows(now, one.cause):
        return "the acknowledged change is usual by now"
    return None


def _is_about(drift: AgentDrift, one: AlarmRecord) -> bool:
    return (drift.agent, drift.task_kind, drift.config or None) == one.subject[:3]


def _shows(drift: AgentDrift, cause: str) -> bool:
    return any(alarm.code == cause for alarm in drift.alarms)


def _begin(span: DaySpan) -> datetime:
    return datetime.combine(span.first, time(), tzinfo=UTC)


def _end(span: DaySpan) -> datetime:
    return datetime.combine(span.last + _DAY, time(), tzinfo=UTC)
