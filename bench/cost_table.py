"""The costs of acts as a table: for the results, and beside what has landed for people who change the hot path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cost import Cost
from bench.table import Figure, Unit


def _seconds(value: float) -> str:
    return str(Figure(value, Unit.SECONDS))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a cost: what it is called, how it is read, and what two of them are compared by."""

    title: str
    of: Callable[[Cost], float | None]
    shown: Callable[[float], str]
    compared: Callable[[Cost], float | None] | None = None  # None: by the figure itself


def _by_sync(cost: Cost) -> float | None:
    """Return wall time by that of a sync; what writes nothing waits for no disk, and it would tell nothing."""
    return cost.wall / cost.raw if cost.written else None


COLUMNS: Final = (
    # The disk and the processor are quicker or slower from one minute to the next; what was measured in the same turns
    # was so as well. Counts need no such help.
    Column("wall", lambda cost: cost.wall, _seconds, _by_sync),
    Column("by fsync", _by_sync, lambda value: f"{value:.3g} ×", lambda _: None),
    Column("CPU", lambda cost: cost.cpu, _seconds, lambda cost: cost.cpu / cost.yardstick),
    Column("CPU beside", lambda cost: cost.beside, _seconds, lambda cost: _by(cost.beside, cost.yardstick)),
    Column("Python calls", lambda cost: cost.calls, _number),
    Column("SQL statements", lambda cost: cost.statements, _number),
    Column("SQLite steps", lambda cost: cost.steps, _number),
    Column("round trips", lambda cost: cost.trips, _number),
    Column("pages", lambda cost: cost.pages, _number),
    Column("bytes written", lambda cost: cost.written, _number),
)


def write_costs(costs: Sequence[Cost]) -> list[str]:
    """Return the lines of the table in Markdown."""
    heading = ["act", *(column.title for column in COLUMNS)]
    return [
        f"| {' | '.join(heading)} |",
        f"|---|{'---:|' * len(COLUMNS)}",
        *(f"| {' | '.join([cost.act, *(_cell(column, cost) for column in COLUMNS)])} |" for cost in costs),
    ]


def compare_costs(costs: Sequence[Cost], landed: Mapping[str, Cost]) -> list[str]:
    """Return lines for a terminal: each figure, and its ratio to the one that has landed."""
    titles = [title for column in COLUMNS for title in (column.title, "")]
    lines = [["act", *titles]]
    for cost in costs:
        before = landed.get(cost.act)
        cells = [part for column in COLUMNS for part in (_cell(column, cost), _ratio(column, cost, before))]
        lines.append([cost.act, *cells])
    return _aligned(lines)


def _by(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _cell(column: Column, cost: Cost) -> str:
    value = column.of(cost)
    return "" if value is None else column.shown(value)


def _ratio(column: Column, cost: Cost, before: Cost | None) -> str:
    if before is None:
        return ""
    read = column.compared or column.of
    now, then = read(cost), read(before)
    if now is None or then is None or now == then == 0:
        return ""
    return "new" if then == 0 else f"{now / then:.2f}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return lines whose columns stand below each other; those that are empty everywhere are left out."""
    columns = [column for column in zip(*lines, strict=True) if any(column)]
    first, *others = ([cell.ljust(max(map(len, columns[0]))) for cell in columns[0]], *columns[1:])
    widths = [max(map(len, column)) for column in others]
    rows = zip(first, *others, strict=True)
    return [
        "  ".join([name, *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))]).rstrip()
        for name, *cells in rows
    ]
