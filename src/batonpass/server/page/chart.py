"""Drawings in SVG, made here: geometry stands in attributes, because the page allows no inline style."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from batonpass.server.page.sign import sign_of

_FEW = 60  # so many runs get larger squares
_BAR_HEIGHT = 44
_BAR = 9


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
    width, height = columns * step, max(1, rows) * step
    return Markup(  # noqa: S704 - numbers, names of our own, and a label that is escaped
        f'<svg class="strip" role="img" aria-label="{escape(label)}" viewBox="-1 -1 {width + 1} {height + 1}" '
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
