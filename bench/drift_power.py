"""How soon drift names a change and raises an alarm, and how often it is wrong, by handoffs a week.

    python -m bench.drift_power [SEEDS]

Generated fleets of three agents, of which one changes after four weeks. What is counted does not depend on the machine.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from statistics import fmean
from typing import Final

from batonpass.drift.drift import AgentDrift, DriftWindow, find_drift
from tests.unit.drift.fleets import CHANGES, MONDAY, TOPICS, question, weeks_of_a_fleet

A_WEEK: Final = (24, 30, 60)
_WEEKS: Final = 10
_CHANGED: Final = 4  # weeks pass before something changes


def main(seeds: int) -> None:
    """Print one line for each change and number of handoffs, and one for weeks in which nothing changes."""
    for a_week in A_WEEK:
        false = [*_false_alarms(a_week, seeds)]
        print(f"{a_week} a week, nothing changes: {len(false)} alarms in {seeds} fleets of 8 weeks")
        for change in CHANGES:
            named, alarmed, by_index, index, late = _power(change, a_week, seeds)
            what = f"{a_week} a week, {change}"
            alarms = (
                f"alarm within four {alarmed}/{seeds}, by the index {by_index}/{seeds} (its mean is {index:.2f}){late}"
            )
            print(f"{what}: named within two windows {named}/{seeds}, {alarms}")


def _false_alarms(a_week: int, seeds: int) -> Iterator[AgentDrift]:
    for seed in range(seeds):
        yield from find_drift(weeks_of_a_fleet(seed, a_week=a_week), question()).alarmed


def _power(change: str, a_week: int, seeds: int) -> tuple[int, int, int, float, str]:
    named = alarmed = by_index = 0
    missed = []
    values: list[float] = []
    for seed in range(seeds):
        days = weeks_of_a_fleet(seed, change=change, a_week=a_week, weeks=_WEEKS, since=_CHANGED)
        (drift,) = (one for one in find_drift(days, question(_WEEKS)).agents if one.agent == "analyst")
        windows = _after(drift)
        named += any(found.topic in TOPICS[change] for window in windows[:2] for found in window.changes)
        found = any(window.alarms for window in windows[:4])
        alarmed += found
        by_index += any(alarm.cause == "index" for window in windows[:4] for alarm in window.alarms)
        values += [window.stability.value for window in windows[1:4] if window.stability.value is not None]
        missed += [] if found else [seed]
    return named, alarmed, by_index, fmean(values), f" (not: fleets {missed})" if missed else ""


def _after(drift: AgentDrift) -> Sequence[DriftWindow]:
    since = MONDAY + timedelta(weeks=_CHANGED)
    return [window for window in drift.windows if window.span.last >= since]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
