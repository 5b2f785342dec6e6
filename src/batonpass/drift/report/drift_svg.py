"""The index window by window, as a chart in SVG: nothing is loaded, nothing runs, and all text is escaped."""

from collections.abc import Iterator

from batonpass.accounts.inert_page import inert_text
from batonpass.drift.drift import AgentDrift, DriftReport, DriftWindow
from batonpass.drift.report.drift_text import INDEX, title_of, told_index
from batonpass.drift.stability import ALARM_BELOW

_WIDTH, _HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 30, 26
# Of the picture itself: a page with its own style says these again, for light and dark.
_COLOURS = {"line": "#3b6ea5", "band": "#3b6ea5", "edge": "#8a94a0", "alarm": "#c0262d", "ink": "#626b77"}


def render_svg(report: DriftReport) -> Iterator[str]:
    """Yield one picture with a chart for each agent and kind of task, piece by piece."""
    shown = [one for one in report.agents if one.windows]
    height = max(1, len(shown)) * _HEIGHT
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="11">\n<title>{INDEX}</title>\n'
    )
    for number, drift in enumerate(shown):
        yield f'<g transform="translate(0 {number * _HEIGHT})">\n'
        yield from _chart(drift)
        yield "</g>\n"
    if not shown:
        yield f'<text x="{_LEFT}" y="{_TOP}" fill="{_COLOURS["ink"]}">no window to show yet</text>\n'
    yield "</svg>\n"


def chart_of(drift: AgentDrift) -> Iterator[str]:
    """Yield the chart of one agent and kind of task, to stand in a page."""
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="11">\n'
    yield from _chart(drift)
    yield "</svg>\n"


def _chart(drift: AgentDrift) -> Iterator[str]:
    ink, edge, alarm = _COLOURS["ink"], _COLOURS["edge"], _COLOURS["alarm"]
    yield f'<text x="{_LEFT}" y="16" fill="{ink}" font-weight="600">{inert_text(title_of(drift)[:80])}</text>\n'
    for value in (0.0, 0.25, 0.5, ALARM_BELOW, 1.0):
        colour, dash = (alarm, ' stroke-dasharray="4 3"') if value == ALARM_BELOW else (edge, "")
        opacity = "0.8" if value == ALARM_BELOW else "0.25"
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(value):.1f}" y2="{_y(value):.1f}" stroke="{colour}" '
            f'stroke-opacity="{opacity}"{dash}/>\n<text x="{_LEFT - 6}" y="{_y(value) + 4:.1f}" text-anchor="end" '
            f'fill="{ink}">{value:g}</text>\n'
        )
    known = [(number, window) for number, window in enumerate(drift.windows) if window.stability.value is not None]
    count = len(drift.windows)
    points = " ".join(f"{_x(number, count):.1f},{_y(window.stability.value or 0):.1f}" for number, window in known)
    yield from (_bar(window, _x(number, count)) for number, window in known if window.interval is not None)
    yield f'<polyline points="{points}" fill="none" stroke="{_COLOURS["line"]}" stroke-width="2"/>\n'
    for number, window in known:
        yield from _point(window, _x(number, count))


def _bar(window: DriftWindow, x: float) -> str:
    low, high = window.interval or (0.0, 0.0)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}" stroke="{_COLOURS["band"]}" '
        'stroke-opacity="0.35" stroke-width="6"/>\n'
    )


def _point(window: DriftWindow, x: float) -> Iterator[str]:
    colour = _COLOURS["alarm"] if window.alarms else _COLOURS["line"]
    about = f"{window.span.words}: {INDEX} {told_index(window)}, {window.closed} closed handoffs"
    about += "".join(f"; {alarm.sentence}" for alarm in window.alarms)
    yield (
        f'<circle cx="{x:.1f}" cy="{_y(window.stability.value or 0):.1f}" r="4" fill="{colour}">'
        f"<title>{inert_text(about)}</title></circle>\n"
        f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle" fill="{_COLOURS["ink"]}">'
        f"{window.span.first:%m-%d}</text>\n"
    )


def _x(number: int, count: int) -> float:
    room = _WIDTH - _LEFT - _RIGHT
    return _LEFT + room * (number + 0.5) / count


def _y(value: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value)
