"""`batonpass drift`: changes over weeks, agent by agent."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from batonpass.cli.input.ledger_access import opened_store, viewed
from batonpass.cli.input.options import ledger_and_json, read_moment, written
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.drift.drift import AgentDrift, DaySpan, DriftQuestion, DriftReport, DriftWindow, find_drift
from batonpass.drift.evidence import find_evidence
from batonpass.drift.report.drift_text import (
    INDEX,
    report_facts,
    side_by_side,
    title_of,
    told_alarm,
    told_change,
    told_index,
)
from batonpass.drift.rollup import read_weeks
from batonpass.model.base.ids import AgentId
from batonpass.records.remarks.alarm import find_alarms

_FORMS: Final = ("md", "html", "svg")
_DAYS: Final = re.compile(r"([1-9][0-9]{0,3})([dw])")
_ONE: Final = timedelta(days=1)


def _read_window(_: click.Context, __: click.Parameter, given: str) -> timedelta:
    found = _DAYS.fullmatch(given)
    if found is None:
        raise click.BadParameter(f"{given!r} is no number of days or weeks, such as 7d or 1w")
    return timedelta(days=int(found[1]) * (7 if found[2] == "w" else 1))


def _read_span(_: click.Context, __: click.Parameter, given: str | None) -> DaySpan | None:
    if given is None:
        return None
    first, dots, last = given.partition("..")
    try:
        span = DaySpan(first=date.fromisoformat(first), last=date.fromisoformat(last if dots else first))
    except ValueError:
        raise click.BadParameter(f"{given!r} is no span of days, such as 2026-10-01..2026-10-14") from None
    if span.last < span.first:
        raise click.BadParameter(f"{given!r} ends before it begins")
    return span


@click.command()
@click.option("--agent", metavar="AGENT", help="Only this agent.")
@click.option(
    "--since",
    metavar="WHEN",
    default="6w",
    show_default=True,
    callback=read_moment,
    help="How far to look back.",
)
@click.option(
    "--window",
    metavar="TIME",
    default="1w",
    show_default=True,
    callback=_read_window,
    help="How long a window is.",
)
@click.option(
    "--baseline", metavar="DAY..DAY", callback=_read_span, help="Compare with these days, not the first ones."
)
@click.option("--full", is_flag=True, help="Compute everything from the receipts, without the roll-ups.")
@click.option("--md", "form", flag_value="md", help="Print Markdown.")
@click.option("--html", "form", flag_value="html", help="Print one self-contained HTML page.")
@click.option("--svg", "form", flag_value="svg", help="Print the charts as SVG.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE, not to stdout.")
@ledger_and_json
def command(
    *,
    agent: str | None,
    since: datetime,
    window: timedelta,
    baseline: DaySpan | None,
    full: bool,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show the changes over weeks, for each agent and kind of task.

    Each window is compared with a baseline: the Agent Stability Index, and the differences in words. Exits with 1 if an
    agent is in alarm.
    """
    if as_json and form is not None:
        raise click.UsageError(f"give either --json or --{form}")
    if output is not None and form is None:
        raise click.UsageError(f"-o needs one of {', '.join(f'--{one}' for one in _FORMS)}")
    asked = DriftQuestion(
        span=DaySpan(first=since.date() + _ONE, last=datetime.now(UTC).date()),
        window=window,
        baseline=baseline,
        agent=None if agent is None else AgentId(agent),
    )
    report = _read(asked, full=full)
    if as_json:
        say_json(report_facts(report))
    elif form is not None:
        with written(output) as file:
            file.writelines(_drawn(report, form))
        if output is not None:
            tell(f"wrote {output}: {len(report.alarmed)} in alarm")
    else:
        _say(report)
    if report.alarmed:
        click.get_current_context().exit(NO)


def _read(asked: DriftQuestion, *, full: bool) -> DriftReport:
    days = (
        asked.span
        if asked.baseline is None
        else DaySpan(first=min(asked.span.first, asked.baseline.first), last=max(asked.span.last, asked.baseline.last))
    )
    with opened_store() as store:
        weeks = read_weeks(store, days, full=full)
        report = find_drift(weeks.days, asked)
        with viewed(store) as view:
            recorded = tuple(one for one in find_alarms(view) if one.cleared_at is None)
            return replace(find_evidence(view, report, weeks), recorded=recorded)


def _drawn(report: DriftReport, form: str) -> Iterator[str]:
    # Loaded on demand: most people want text.
    if form == "md":
        from batonpass.drift.report.drift_markdown import render_markdown_drift  # noqa: PLC0415 - as above

        return (f"{line}\n" for line in render_markdown_drift(report))
    if form == "html":
        from batonpass.drift.report.drift_html import render_html_drift  # noqa: PLC0415 - as above

        return render_html_drift(report)
    from batonpass.drift.report.drift_svg import render_svg  # noqa: PLC0415 - as above

    return render_svg(report)


def _say(report: DriftReport) -> None:
    for drift in report.agents:
        _say_agent(report, drift)
        say()
    for name, closed in report.scarce.items():
        table([[paint(f"{name}: too few closed handoffs for a baseline ({closed})", dim=True)]], fold=True)
    if not report.agents and not report.scarce:
        say("no handoff was closed in this time")
        return
    alarmed = len(report.alarmed)
    words = f"{counted(alarmed, 'agent', plural='agents')} in alarm" if alarmed else "no agent is in alarm"
    say(paint(words, "red" if alarmed else None, bold=True))


def _say_agent(report: DriftReport, drift: AgentDrift) -> None:
    say(paint(title_of(drift), bold=True))
    about = f"baseline {drift.baseline.words} · {counted(drift.closed, 'closed handoff')}"
    table([[paint(" · ".join([about, *drift.config_words]), dim=True)]], indent="  ", fold=True)
    if drift.replaces is not None:
        table([[told_change(drift.replaces)]], indent="  ", fold=True)
    for alarm in drift.alarms:
        words = told_alarm(report, drift, alarm)
        table([[paint("alarm: ", "red", bold=True), words]], indent="  ", gap="", fold=True)
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    for window in drift.windows:
        closed = paint(f" · {counted(window.closed, 'closed handoff')} · {INDEX} ", dim=True)
        say("  ", window.span.words, closed, told_index(window))
        for change in window.changes:
            if change.id not in seen:
                seen.add(change.id)
                table([["changed: ", told_change(change)]], indent="    ", gap="", fold=True)
    if drift.windows:
        _say_weeks(drift, drift.windows[-1])
    else:
        say(paint(f"  no window after the baseline yet; {counted(drift.pending, 'closed handoff')} wait", dim=True))


def _say_weeks(drift: AgentDrift, last: DriftWindow) -> None:
    """Print the baseline and the last window side by side, as far as they differ."""
    rows = [[*row] for row in side_by_side(drift, last) if row[1] != row[2] and not row[0].startswith("stability")]
    if rows:
        heads = ["", paint(drift.baseline.words, dim=True), paint(last.span.words, dim=True)]
        table([heads, *rows], indent="  ", fold=True)
