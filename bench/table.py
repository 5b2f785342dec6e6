"""The table: what, ours, the limit or peer, their ratio, the goal, and whether it was met."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from bench.measure import Samples

MILLISECOND: Final = 1e-3
_FEW: Final = 100  # below, a tenth more or less is worth telling
# Over the quickest sample. Undisturbed runs had 1.3 to 2.6 here, those beside other people's tests 4 to 19.
_BUSY: Final = 3.0


class Unit(StrEnum):
    """What a figure counts."""

    SECONDS = "s"
    RATE = "/s"
    BYTES = "bytes"
    SHARE = "%"
    COUNT = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the table, and what it was taken from."""

    value: float
    unit: Unit
    summary: Mapping[str, float] | None = None

    def __str__(self) -> str:
        match self.unit:
            case Unit.SECONDS if self.value < MILLISECOND:
                return f"{self.value * 1e6:,.0f} µs"
            case Unit.SECONDS:
                return f"{self.value * 1e3:,.3g} ms" if self.value < 1 else f"{self.value:,.2f} s"
            case Unit.RATE:
                return f"{self.value:,.0f}/s"
            case Unit.BYTES:
                return f"{self.value:,.0f} bytes"
            case Unit.SHARE:
                return f"{self.value:.2%}"
            case Unit.COUNT:
                return f"{self.value:,.3g}" if self.value < _FEW else f"{self.value:,.0f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What we want to reach, a bound for the ratio or for our own figure; and what must hold until we are there."""

    words: str
    at_most: float | None = None
    at_least: float | None = None
    of_ratio: bool = True
    must: float | None = None  # the same bound, wider

    def is_met(self, row: "Row") -> bool | None:
        """Return whether a row meets it; None if the row could not be measured against anything."""
        value = self._value(row)
        return None if value is None else self._within(value, self.at_most, self.at_least)

    def is_held(self, row: "Row") -> bool | None:
        """Return whether a row keeps to what must hold, which is the goal itself if nothing wider is said."""
        value = self._value(row)
        if value is None or self.must is None:
            return self.is_met(row)
        return self._within(
            value,
            None if self.at_most is None else self.must,
            None if self.at_least is None else self.must,
        )

    def _value(self, row: "Row") -> float | None:
        if self.of_ratio:
            return row.ratio
        return None if row.ours is None else row.ours.value

    @staticmethod
    def _within(value: float, at_most: float | None, at_least: float | None) -> bool:
        return (at_most is None or value <= at_most) and (at_least is None or value >= at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. The ratio is ours by theirs: of times, smaller is better; of rates, larger."""

    what: str
    ours: Figure | None
    against: str
    theirs: Figure | None
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Return ours by theirs."""
        return None if self.ours is None or self.theirs is None else self.ours.value / self.theirs.value

    @property
    def met(self) -> bool | None:
        """Return whether the goal is met; None if there is none, or if a busy disk may have met it for us."""
        met = None if self.goal is None else self.goal.is_met(self)
        return None if met and self.hidden else met

    @property
    def held(self) -> bool | None:
        """Return whether what must hold does; None as for the goal."""
        held = None if self.goal is None else self.goal.is_held(self)
        return None if held and self.hidden else held

    @property
    def hidden(self) -> bool:
        """Return whether waiting for a disk that others kept busy hides what we are slower by.

        It adds the same to both sides, so it can only make such a ratio smaller: a miss stays a miss.
        """
        if self.goal is None or self.goal.at_most is None or not self.goal.of_ratio:
            return False
        if self.theirs is None or self.theirs.unit is not Unit.SECONDS or self.theirs.summary is None:
            return False
        return self.theirs.summary["p50"] > _BUSY * self.theirs.summary["min"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader of the table has to know."""

    text: str


def at_most(times: float, *, must: float | None = None) -> Goal:
    """Return the goal that ours takes at most so many times as long."""
    return Goal(words=_words(f"≤ {times:g} ×", must), at_most=times, must=must)


def at_least(share: float, *, must: float | None = None) -> Goal:
    """Return the goal that ours is at least so many times as fast."""
    return Goal(words=_words(f"≥ {share:g} ×", must), at_least=share, must=must)


def within(seconds: float, *, must: float | None = None) -> Goal:
    """Return the goal that ours takes at most so long."""
    words = _words(f"≤ {seconds * 1e3:g} ms", None if must is None else must * 1e3)
    return Goal(words=words, at_most=seconds, of_ratio=False, must=must)


def at_rate(rate: float, *, must: float | None = None) -> Goal:
    """Return the goal that ours does at least so many in a second."""
    return Goal(words=_words(f"≥ {rate:,.0f}/s", must), at_least=rate, of_ratio=False, must=must)


def _words(goal: str, must: float | None) -> str:
    return goal if must is None else f"{goal} (must: {must:g})"


def p50(samples: Samples) -> Figure:
    """Return the median of times."""
    return Figure(samples.p50, Unit.SECONDS, samples.summary())


def p95(samples: Samples) -> Figure:
    """Return what all but one in twenty times stay below."""
    return Figure(samples.p95, Unit.SECONDS, samples.summary())


def p99(samples: Samples) -> Figure:
    """Return what all but one in a hundred times stay below."""
    return Figure(samples.p99, Unit.SECONDS, samples.summary())


def rate(samples: Samples) -> Figure:
    """Return the median of rates."""
    return Figure(samples.p50, Unit.RATE, samples.summary())


def pace(samples: Samples) -> Figure:
    """Return how many in a second one after the other are, each taking the median of times."""
    return Figure(1 / samples.p50, Unit.RATE, samples.summary())


def skipped(what: str, why: str) -> Row:
    """Return a row that says why something was not measured."""
    return Row(what=what, ours=None, against=f"skipped: {why}", theirs=None)


def write_markdown(facts: Mapping[str, Any], rows: Sequence[Row | Note], costs: Sequence[str] = ()) -> str:
    """Return the table for people, the table of costs, and the notes below them."""
    lines = [
        "# Ratios, measured in one run",
        "",
        _heading(facts),
        "",
        "| what | ours | limit or peer | | ratio | goal | met? |",
        "|---|---:|---|---:|---:|---|---|",
        *(_line(row) for row in rows if isinstance(row, Row)),
        "",
        *(["What one act costs:", "", *costs, ""] if costs else []),
        *(f"- {note.text}." for note in rows if isinstance(note, Note)),
        "",
        "Ratio: ours by theirs. Of times smaller is better, of rates larger. How to read it: bench/README.md.",
        "",
    ]
    return "\n".join(lines)


def write_json(facts: Mapping[str, Any], rows: Sequence[Row | Note], costs: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the tables for programs, with a summary of the samples behind each figure."""
    listed = [
        asdict(row) | {"ratio": row.ratio, "met": row.met, "held": row.held, "hidden": row.hidden}
        for row in rows
        if isinstance(row, Row)
    ]
    for row in listed:
        row["goal"] = row["goal"] and row["goal"]["words"]
    notes = [note.text for note in rows if isinstance(note, Note)]
    return (
        json.dumps({**facts, "rows": listed, "costs": list(costs), "notes": notes}, indent=2, ensure_ascii=False) + "\n"
    )


def _heading(facts: Mapping[str, Any]) -> str:
    machine = facts["machine"]
    parts = (
        facts["date"],
        f"{'short' if facts['short'] else 'full'} run, {facts['seconds']} s",
        f"{machine['cores']} cores ({machine['processor']})",
        f"Linux {machine['kernel']}",
        machine["filesystem"],
        f"Python {machine['python']}",
        f"SQLite {machine['sqlite']}",
        f"load {machine['load']} when it ended",
    )
    return " · ".join(parts)


def _line(row: Row) -> str:
    cells = (
        row.what,
        "–" if row.ours is None else str(row.ours),
        row.against,
        "" if row.theirs is None else str(row.theirs),
        "" if row.ratio is None else f"{row.ratio:.2f} ×",
        "" if row.goal is None else row.goal.words,
        _verdict(row),
    )
    return f"| {' | '.join(cells)} |"


def _verdict(row: Row) -> str:
    if row.goal is None or row.goal.is_met(row) is None:
        return ""
    if row.held is None:
        return "disk busy"
    if row.met:
        return "yes"
    return "what must hold" if row.held else "**no**"
