"""Six weeks of an analysis that drifts: each handoff looks fine, week one and week six do not.

    python examples/drift.py DIRECTORY

It runs in seconds, offline and without a key: the agents are plain functions, everything else is real, and a clock is
moved so that six weeks pass. From the third week on the threshold for anomalies is 2.5, where it was 3.0; from the
fourth on the analyst may query an archive too; in the fifth an intern begins to hand off to it. Nobody announces it.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from batonpass import Brief, Constraint, Relay, tool
from batonpass.drift.drift import DaySpan, DriftQuestion, DriftReport, find_drift
from batonpass.drift.evidence import find_evidence
from batonpass.drift.report.drift_text import side_by_side, title_of, told_change, told_index
from batonpass.drift.rollup import read_weeks
from batonpass.model.base.ids import AgentId
from batonpass.testing import FrozenClock

WEEKS = 6
A_DAY = 6  # analyses on each day
DAY = timedelta(days=1)
# The weeks in which something changes.
THRESHOLD, ARCHIVE, INTERN = 3, 4, 5

Tell = Callable[[str], None]


@tool(reads=True)
def find_anomalies(table: str, threshold: str) -> list[str]:
    """Return what is off by more than the threshold."""
    return ["online", "east"] if float(threshold) < float("3.0") and table else ["online"]


def analyse(relay: Relay, number: int, week: int, chance: Random) -> None:
    """Have one analysis made: somebody asks, the analyst works, and a person checks."""
    threshold = "2.5" if week >= THRESHOLD else "3.0"
    asker = "intern" if week >= INTERN and chance.random() < float("0.7") else "lead"
    archive = ["call:read_archive"] if week >= ARCHIVE else []
    agreed = Constraint(key="threshold", operator=">=", value=threshold, unit="sigma")
    with relay.start(f"Analyse batch {number}", by="user:ana", agent=asker, items=[agreed]) as lead:
        handoff = lead.hand_off(
            "analyst",
            f"Flag the anomalies in batch {number}",
            may=["call:find_anomalies", *archive],
            brief=Brief(phase="analysis"),
        )
        with handoff as analyst:
            found = analyst.call(find_anomalies, f"batch {number}", threshold)
            analyst.report(f"{len(found)} anomalies flagged, each with its severity")
        handoff.verify(by="user:ana", verdict="these are the items that matter")


def six_weeks(directory: Path, seed: int = 7) -> Path:
    """Let six weeks pass in a ledger of its own, up to now, and return its file."""
    chance = Random(seed)  # noqa: S311 - a story, no secret
    began = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0) - (WEEKS * 7) * DAY
    clock = FrozenClock(began)
    ledger = directory / ".batonpass" / "ledger.db"
    with Relay.open(ledger, clock=clock, work_tree=directory) as relay:
        for day in range(WEEKS * 7):
            clock.tick(began + (day + 1) * DAY - clock.now())
            for number in range(A_DAY):
                clock.tick(timedelta(minutes=chance.randint(5, 30)))
                analyse(relay, day * A_DAY + number, day // 7 + 1, chance)
    return ledger


def compare_weeks(ledger: Path) -> DriftReport:
    """Return what changed in these weeks."""
    today = datetime.now(UTC).date()
    span = DaySpan(first=today - (WEEKS * 7 - 1) * DAY, last=today)
    with Relay.open(ledger) as relay:
        weeks = read_weeks(relay.store, span)
        report = find_drift(weeks.days, DriftQuestion(span=span, agent=AgentId("analyst")))
        with relay.store.view() as view:
            return find_evidence(view, report, weeks)


def tell_weeks(report: DriftReport, tell: Tell) -> None:
    """Tell what became of the analysis, window by window, and the first week against the last."""
    (drift,) = report.agents
    told = set()
    tell(f"{title_of(drift)}: every single handoff was accepted, done and verified")
    for window in drift.windows:
        tell(f"{window.span.words}: Agent Stability Index {told_index(window)}")
        for change in window.changes:
            if change.id not in told:
                told.add(change.id)
                tell(f"  {told_change(change)}")
    for alarm in drift.alarms:
        tell(f"alarm: {alarm.sentence}")
    tell("week 1 against week 6:")
    for what, before, after in side_by_side(drift, drift.windows[-1]):
        if before != after and not what.startswith("stability"):
            tell(f"  {what}: {before} | {after}")


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and a directory
        sys.exit(__doc__)
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    tell_weeks(compare_weeks(six_weeks(Path(sys.argv[1]))), print)
