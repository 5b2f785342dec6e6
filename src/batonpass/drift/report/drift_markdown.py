"""A drift report as Markdown, in which nothing that an agent wrote is live."""

from collections.abc import Iterator

from batonpass.accounts.inert_markdown import inert
from batonpass.drift.drift import AgentDrift, DriftReport
from batonpass.drift.report.drift_text import INDEX, side_by_side, title_of, told_alarm, told_change, told_index


def render_markdown_drift(report: DriftReport) -> Iterator[str]:
    """Yield the lines of a report."""
    alarmed = len(report.alarmed)
    yield "## Drift"
    yield ""
    yield f"{f'{alarmed} in alarm' if alarmed else 'Nobody is in alarm'}, {report.question.span.words}."
    for drift in report.agents:
        yield from _section(report, drift)
    for name, closed in report.scarce.items():
        yield ""
        yield f"{inert(name)}: too few closed handoffs for a baseline ({closed})"


def _section(report: DriftReport, drift: AgentDrift) -> Iterator[str]:
    yield ""
    yield f"### {inert(title_of(drift))}"
    yield ""
    about = " · ".join([f"baseline {drift.baseline.words}, {drift.closed} closed handoffs", *drift.config_words])
    yield inert(about)
    told = [f"**alarm:** {inert(told_alarm(report, drift, alarm))}" for alarm in drift.alarms]
    told += [] if drift.replaces is None else [inert(told_change(drift.replaces))]
    yield from ([""] if told else [])
    yield from (f"- {line}" for line in told)
    yield ""
    if not drift.windows:
        yield f"No window after the baseline yet; {drift.pending} closed handoffs wait."
        return
    yield f"| window | closed | {INDEX} | what changed |"
    yield "|---|---|---|---|"
    for window in drift.windows:
        changes = "; ".join(inert(told_change(change)) for change in window.changes) or "–"
        yield f"| {window.span.words} | {window.closed} | {told_index(window)} | {changes} |"
    last = drift.windows[-1]
    rows = [row for row in side_by_side(drift, last) if not row[0].startswith("stability")]
    if rows:
        yield ""
        yield f"| | {drift.baseline.words} | {last.span.words} |"
        yield "|---|---|---|"
        yield from (f"| {' | '.join(inert(cell) or '–' for cell in row)} |" for row in rows)
