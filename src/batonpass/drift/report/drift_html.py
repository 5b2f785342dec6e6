"""A drift report as one HTML page: charts, changes in words, and the weeks side by side."""

from collections.abc import Iterator
from importlib.resources import files

from batonpass.accounts.inert_page import CLOSING, PAGE_STYLE, inert_text, opening
from batonpass.drift.drift import AgentDrift, DriftReport
from batonpass.drift.report.drift_svg import chart_of
from batonpass.drift.report.drift_text import INDEX, side_by_side, title_of, told_alarm, told_change, told_index

_STYLE = PAGE_STYLE + files(__package__).joinpath("drift.css").read_text(encoding="utf-8")


def render_html_drift(report: DriftReport) -> Iterator[str]:
    """Yield one self-contained page, piece by piece."""
    yield opening("Drift", _STYLE)
    yield "<header>\n<h1>Drift</h1>\n<ul class=facts>\n"
    alarmed = len(report.alarmed)
    yield f'<li class="bad">{alarmed} in alarm</li>\n' if alarmed else "<li>nobody is in alarm</li>\n"
    yield f"<li>{report.question.span.words}</li>\n<li>windows of {report.question.window.days} days</li>\n"
    yield "</ul>\n</header>\n<main>\n"
    for drift in report.agents:
        yield from _section(report, drift)
    for name, closed in report.scarce.items():
        yield f'<p class="quiet">{inert_text(name)}: too few closed handoffs for a baseline ({closed})</p>\n'
    yield f"</main>\n{CLOSING}"


def _section(report: DriftReport, drift: AgentDrift) -> Iterator[str]:
    yield '<section class="alarm">\n' if drift.alarms else "<section>\n"
    yield f"<h2><bdi>{inert_text(title_of(drift))}</bdi></h2>\n"
    about = [f"baseline {drift.baseline.words}, {drift.closed} closed handoffs"]
    about += [", ".join(drift.config_words)] if drift.config_words else []
    yield f'<p class="quiet">{inert_text(" · ".join(about))}</p>\n'
    for alarm in drift.alarms:
        yield f'<p class="bad">alarm: <bdi>{inert_text(told_alarm(report, drift, alarm))}</bdi></p>\n'
    if drift.replaces is not None:
        yield f"<p><bdi>{inert_text(told_change(drift.replaces))}</bdi></p>\n"
    if not drift.windows:
        yield f'<p class="quiet">no window after the baseline yet; {drift.pending} handoffs wait</p>\n</section>\n'
        return
    yield from chart_of(drift)
    yield '<div class="scroll" tabindex="0"><table>\n<thead><tr><th scope=col>window</th><th scope=col>closed</th>'
    yield f"<th scope=col>{INDEX}</th><th scope=col>what changed</th></tr></thead>\n<tbody>\n"
    for window in drift.windows:
        changes = "".join(f"<li><bdi>{inert_text(told_change(change))}</bdi></li>" for change in window.changes)
        yield (
            f"<tr><td>{window.span.words}</td><td>{window.closed}</td><td>{told_index(window)}</td>"
            f"<td>{f'<ul>{changes}</ul>' if changes else '–'}</td></tr>\n"
        )
    yield "</tbody>\n</table></div>\n"
    yield from _weeks(drift)
    yield "</section>\n"


def _weeks(drift: AgentDrift) -> Iterator[str]:
    last = drift.windows[-1]
    yield '<div class="scroll" tabindex="0"><table>\n<thead><tr><th></th>'
    yield f"<th scope=col>{drift.baseline.words}</th><th scope=col>{last.span.words}</th></tr></thead>\n<tbody>\n"
    for what, before, after in side_by_side(drift, last):
        mark = ' class="changed"' if before != after and not what.startswith("stability") else ""
        yield (
            f"<tr><th scope=row>{inert_text(what)}</th><td><bdi>{inert_text(before) or '–'}</bdi></td>"
            f"<td{mark}><bdi>{inert_text(after) or '–'}</bdi></td></tr>\n"
        )
    yield "</tbody>\n</table></div>\n"
