"""A drift report in sentences and as facts, for every way of showing it."""

from collections.abc import Iterator
from typing import Any

from batonpass.audit.short_ids import ending
from batonpass.drift.change import DriftChange
from batonpass.drift.drift import AgentDrift, DaySpan, DriftAlarm, DriftReport, DriftWindow
from batonpass.drift.stability import GROUPS
from batonpass.records.json_shapes import exact
from batonpass.records.remarks.alarm import AlarmRecord

INDEX = "Agent Stability Index"


def title_of(drift: AgentDrift) -> str:
    """Return whose drift it is."""
    return f"{drift.agent} · {drift.task_kind}"


def told_change(change: DriftChange) -> str:
    """Return a change with the first handoff that shows it."""
    return change.sentence if change.first is None else f"{change.sentence}, first at handoff {ending(change.first)}"


def told_index(window: DriftWindow) -> str:
    """Return the index of a window with its interval and how much of it could be computed."""
    value = window.stability.value
    if value is None:
        return "no data"
    interval = "" if window.interval is None else f" ({window.interval[0]:.2f} to {window.interval[1]:.2f})"
    return f"{value:.2f}{interval} · coverage {window.stability.coverage:.0%}"


def side_by_side(drift: AgentDrift, window: DriftWindow) -> Iterator[tuple[str, str, str]]:
    """Yield the facts of the baseline beside those of a window, row by row."""
    for what, aspect in _ROWS:
        ours, theirs = (_shares(held, aspect) for held in (drift.counts, window.counts))
        # Keys that differ come first: what is new must not hide behind three that are as ever.
        telling = sorted(ours | theirs, key=lambda key: (-abs(ours.get(key, 0) - theirs.get(key, 0)), key))
        before, after = (_usual(shares, telling, aspect) for shares in (ours, theirs))
        if before or after:
            yield what, before, after
    for name in (name for _, names in GROUPS.values() for name in names):
        if name in window.stability.dimensions:
            yield f"stability of {name}", "1.00", f"{window.stability.dimensions[name]:.2f}"


_ROWS = (
    ("constraints", "constraint"),
    ("scope granted", "granted"),
    ("scope used", "used"),
    ("tools", "uses"),
    ("order of tools", "order"),
    ("handed off by", "from"),
    ("hands off to", "to"),
    ("questions", "question"),
    ("held", "held"),
    ("denied", "refused"),
    ("results", "standing"),
    ("ended", "end"),
    ("attempts", "tries"),
)
_SHOWN = 3
_RARE = 0.05  # of all handoffs


def _shares(held: dict[str, dict[str, int]], aspect: str) -> dict[str, float]:
    """Return the share of handoffs that have each key of an aspect."""
    closed = max(1, held.get("closed", {}).get("n", 0))
    return {key: count / closed for key, count in held.get(aspect, {}).items()}


def _usual(shares: dict[str, float], telling: list[str], aspect: str) -> str:
    """Return the most telling keys of an aspect with their shares."""
    shown = [key for key in telling if shares.get(key, 0) >= _RARE][:_SHOWN]
    if shares and not shown:  # such as files, another one in each task
        return f"{len(shares)} different, each in {max(shares.values()):.0%} or less"
    more = f", {len(shares) - len(shown)} more" if len(shares) > len(shown) else ""
    ordered = sorted(shown, key=lambda key: (-shares[key], key))
    return ", ".join(f"{_readable(key, aspect)} {shares[key]:.0%}" for key in ordered) + more


def _readable(key: str, aspect: str) -> str:
    if aspect == "tries":
        return "one" if key == "1" else key
    return " → ".join(key.split()) if aspect == "order" else key


def report_facts(report: DriftReport) -> dict[str, Any]:
    """Return a report for programs."""
    return {
        "since": report.question.span.first.isoformat(),
        "until": report.question.span.last.isoformat(),
        "window_days": report.question.window.days,
        "in_alarm": len(report.alarmed),
        "agents": [_agent_facts(report, one) for one in report.agents],
        "scarce": dict(report.scarce),
    }


def _agent_facts(report: DriftReport, drift: AgentDrift) -> dict[str, Any]:
    return {
        "agent": drift.agent,
        "task_kind": drift.task_kind,
        "config": drift.config or None,
        "configuration": list(drift.config_words),
        "baseline": {**_span_facts(drift.baseline), "closed": drift.closed},
        "began_with": None if drift.replaces is None else _change_facts(drift.replaces),
        "alarms": [_alarm_now(report, drift, alarm) for alarm in drift.alarms],
        "pending": drift.pending,
        "windows": [_window_facts(drift, window) for window in drift.windows],
    }


def _alarm_now(report: DriftReport, drift: AgentDrift, alarm: DriftAlarm) -> dict[str, Any]:
    found = report.find_recorded(drift, alarm)
    told = None if found is None else alarm_facts(found)
    return {"cause": alarm.cause, "sentence": alarm.sentence, "recorded": told}


def alarm_facts(one: AlarmRecord) -> dict[str, Any]:
    """Return an alarm on record for programs."""
    seen = one.seen
    return {
        "alarm": one.key,
        "agent": one.agent,
        "task_kind": one.task_kind,
        "config": one.raised.configuration,
        "cause": one.cause,
        "sentence": one.sentence,
        "first_handoff": one.raised.first,
        "raised_at": exact(one.at),
        "stands": one.stands,
        "acknowledged": None if seen is None else {"by": seen.by, "at": exact(seen.at), "reason": seen.reason},
        "cleared_at": None if one.cleared_at is None else exact(one.cleared_at),
        "receipt": one.receipt,
    }


def told_alarm(report: DriftReport, drift: AgentDrift, alarm: DriftAlarm) -> str:
    """Return an alarm in words, with its acknowledgement or its end if it is on record."""
    found = report.find_recorded(drift, alarm)
    return alarm.sentence if found is None else f"{alarm.sentence} (on record as {found.key}, {found.words})"


def _window_facts(drift: AgentDrift, window: DriftWindow) -> dict[str, Any]:
    value = window.stability.value
    return {
        **_span_facts(window.span),
        "closed": window.closed,
        "agent_stability_index": None if value is None else round(value, 4),
        "interval": None if window.interval is None else [round(end, 4) for end in window.interval],
        "coverage": round(window.stability.coverage, 4),
        "dimensions": {name: round(one, 4) for name, one in window.stability.dimensions.items()},
        "changes": [_change_facts(change) for change in window.changes],
        "alarms": [{"cause": alarm.cause, "sentence": alarm.sentence} for alarm in window.alarms],
        "side_by_side": [
            {"what": what, "baseline": before, "window": after} for what, before, after in side_by_side(drift, window)
        ],
    }


def _span_facts(span: DaySpan) -> dict[str, str]:
    return {"first": span.first.isoformat(), "last": span.last.isoformat()}


def _change_facts(change: DriftChange) -> dict[str, Any]:
    return {
        "topic": change.topic.value,
        "sentence": change.sentence,
        "before": round(change.before, 4),
        "after": round(change.after, 4),
        "chance": change.chance,
        "first_handoff": change.first,
    }
