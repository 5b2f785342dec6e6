"""Drawings in SVG, made here: geometry stands in attributes, because the page allows no inline style."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from batonpass.drift.drift import AgentDrift, DriftWindow
from batonpass.drift.stability import ALARM_BELOW
from batonpass.server.page.sign import sign_of

_FEW = 60  # so many runs get larger squares
_NARROW = 22  # so many squares are beside each other on a phone
_BAR_HEIGHT = 44
_BAR = 9
_INDEX_HEIGHT, _INDEX_TOP, _INDEX_BOTTOM = 170, 10, 32
_INDEX_LEFT, _INDEX_RIGHT, _INDEX_STEP, _INDEX_LEAST = 36, 8, 64, 300
_INDEX_COVER = 28  # how wide whole coverage is


def strip(states: Sequence[tuple[str, str]], columns: int, label: str) -> Markup:
    """Return one square for each run, in the order in which they began; larger where somebody should look."""
    columns = max(1, min(columns, len(states) or 1))
    cell, gap = (12, 3) if len(states) <= _FEW else (5, 1)
    step = cell + gap
    squares = []
    for number, (_, state) in enumerate(states):
        tone = sign_of(state).tone or ("done" if state == "completed" else "wait")
        big = tone in {"warn", "bad"}
        x, y = number % columns * step, number // columns * step
        squares.append(
            f'<rect class="s-{tone}" x="{x - big * 0.5:g}" y="{y - big * 0.5:g}" width="{cell + big}" '
            f'height="{cell + big}" rx="{gap}"/>'
        )
    rows = (len(states) + columns - 1) // columns
    # Many may be stretched: on a phone, in one row, they would be too flat to be seen.
    kind, ratio = ("strip", "") if len(states) <= _NARROW else ("strip many", ' preserveAspectRatio="none"')
    width, height = columns * step, max(1, rows) * step
    return Markup(  # noqa: S704 - numbers, names of our own, and a label that is escaped
        f'<svg class="{kind}" role="img" aria-label="{escape(label)}" viewBox="-1 -1 {width + 1} {height + 1}"{ratio} '
        f'width="{width + 1}" height="{height + 1}">{"".join(squares)}</svg>'
    )


def bars(counts: Sequence[int], tone: str, label: str) -> Markup:
    """Return a bar for each count."""
    most = max([*counts, 1])
    drawn = []
    for number, count in enumerate(counts):
        height = 0 if not count else max(2, round(count / most * (_BAR_HEIGHT - 2)))
        x = number * _BAR
        drawn.append(f'<rect class="ground" x="{x}" y="{_BAR_HEIGHT - 1}" width="{_BAR - 2}" height="1"/>')
        if height:
            y = _BAR_HEIGHT - height
            drawn.append(f'<rect class="s-{tone}" x="{x}" y="{y}" width="{_BAR - 2}" height="{height}" rx="1"/>')
    width = len(counts) * _BAR
    return Markup(  # noqa: S704 - as above
        f'<svg class="bars" role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {_BAR_HEIGHT}" '
        f'preserveAspectRatio="none">{"".join(drawn)}</svg>'
    )


def index_chart(drift: AgentDrift) -> Markup:
    """Return the Agent Stability Index window by window, its interval and coverage, and which windows are in alarm."""
    count = len(drift.windows)
    width = max(_INDEX_LEAST, _INDEX_LEFT + count * _INDEX_STEP + _INDEX_RIGHT)
    drawn = []
    for value in (0.0, 0.5, ALARM_BELOW, 1.0):
        y, kind = _index_y(value), "limit" if value == ALARM_BELOW else "ground"
        drawn.append(f'<line class="{kind}" x1="{_INDEX_LEFT}" x2="{width - _INDEX_RIGHT}" y1="{y:g}" y2="{y:g}"/>')
        drawn.append(f'<text x="{_INDEX_LEFT - 6}" y="{y + 4:g}" text-anchor="end">{value:g}</text>')
    places = [(_INDEX_LEFT + _INDEX_STEP * (number + 0.5), window) for number, window in enumerate(drift.windows)]
    line = " ".join(f"{x:g},{_index_y(one.stability.value):g}" for x, one in places if one.stability.value is not None)
    drawn.append(f'<polyline class="curve" points="{line}"/>')
    for x, window in places:
        drawn += _index_point(x, window)
    said = "; ".join(f"{window.span.words} {_index_words(window)}" for window in drift.windows)
    return Markup(  # noqa: S704 - numbers, dates, names of our own, and a label that is escaped
        f'<svg class="index" role="img" aria-label="{escape(f"Agent Stability Index: {said}")}" '
        f'viewBox="0 0 {width} {_INDEX_HEIGHT}" width="{width}" height="{_INDEX_HEIGHT}">{"".join(drawn)}</svg>'
    )


def _index_point(x: float, window: DriftWindow) -> list[str]:
    drawn = []
    value, is_alarm = window.stability.value, bool(window.alarms)
    if window.interval is not None:
        low, high = (_index_y(min(1.0, max(0.0, end))) for end in window.interval)
        drawn.append(f'<line class="range" x1="{x:g}" x2="{x:g}" y1="{low:.1f}" y2="{high:.1f}"/>')
    if value is not None:
        y = _index_y(value)
        # A square for an alarm: its shape tells it as well.
        drawn.append(
            f'<rect class="s-bad" x="{x - 5:g}" y="{y - 5:.1f}" width="10" height="10"/>'
            if is_alarm
            else f'<circle class="s-live" cx="{x:g}" cy="{y:.1f}" r="4"/>'
        )
    covered = window.stability.coverage * _INDEX_COVER
    bottom = _INDEX_HEIGHT - 20
    drawn.append(f'<rect class="ground" x="{x - 14:g}" y="{bottom}" width="{_INDEX_COVER}" height="3"/>')
    drawn.append(f'<rect class="s-done" x="{x - 14:g}" y="{bottom}" width="{covered:.1f}" height="3"/>')
    drawn.append(f'<text x="{x:g}" y="{_INDEX_HEIGHT - 5}" text-anchor="middle">{window.span.first:%d %b}</text>')
    return drawn


def _index_words(window: DriftWindow) -> str:
    value = window.stability.value
    told = "no data" if value is None else f"{value:.2f}, coverage {window.stability.coverage:.0%}"
    return f"{told}{', in alarm' if window.alarms else ''}"


def _index_y(value: float) -> float:
    return _INDEX_TOP + (_INDEX_HEIGHT - _INDEX_TOP - _INDEX_BOTTOM) * (1 - value)
