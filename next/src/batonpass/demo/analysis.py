"""A quarterly analysis by three agents: one compiles the data, one flags what stands out, one drafts the summary.

What was agreed (a threshold, an exclusion) stands nowhere in this file: each agent takes it from its baton.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Final

from batonpass import Claim, Decision, Exclusion, Handoff, Relay, Run, WorkItem, tool

INTENT: Final = "What stood out in the third quarter?"
SUMMARY: Final = "summary.md"
DRAFT_TASK: Final = "Draft the summary for Ana"
OUTSIDE: Final = "outside.txt"  # what the world beyond the record has seen
AT_HALF: Final[list[Callable[[], None]]] = []  # called when the summary is half done

_FIGURES: Final = "data/figures.csv"
_ANOMALIES: Final = "data/anomalies.csv"
_SALES: Final = (
    ("North", 412_000, 418_000),
    ("South", 368_000, 301_000),
    ("East", 220_000, 264_000),
    ("West", 505_000, 512_000),
    ("Islands", 88_000, 31_000),
)


@tool(target="path")
def pull_sales(path: str) -> int:
    """Pull the figures of the quarter; the service bills each time."""
    _act_outside("pulled the sales of 2026-Q3")
    _write_rows(path, (("region", "q2", "q3"), *_SALES))
    return len(_SALES)


@tool(target="path")
def flag_anomalies(path: str, threshold: int, excluded: list[str]) -> list[str]:
    """Flag the regions that changed by more than the threshold, in per cent."""
    _act_outside("compared the regions")
    rows = [row for row in _read_rows(_FIGURES) if row["region"] not in excluded]
    flagged = [(row["region"], _change(row)) for row in rows if abs(_change(row)) > threshold]
    severe = 2 * threshold
    kinds = [(region, change, "high" if abs(change) > severe else "medium") for region, change in flagged]
    _write_rows(path, (("region", "change", "severity"), *kinds))
    return [region for region, _ in flagged]


@tool
def order_chart(regions: list[str]) -> str:
    """Order a chart; it is paid for."""
    _act_outside("ordered a chart")
    return f"chart of {', '.join(regions)}"


@tool(target="path")
def write_summary(path: str, chart: str, threshold: int, excluded: list[str]) -> None:
    """Write the summary, whole or not at all."""
    found = [
        f"- {row['region']} changed by {int(row['change']):+d} % ({row['severity']})" for row in _read_rows(_ANOMALIES)
    ]
    agreed = f"Flagged is what changed by more than {threshold} %; left out: {', '.join(excluded)}."
    lines = ["# Third quarter", "", *found, "", agreed, f"See {chart}."]
    draft = Path(path).with_suffix(".part")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for wait in AT_HALF:
        wait()
    draft.replace(path)


@tool
def send_summary(to: str) -> None:
    """Send the summary; a mail cannot be taken back."""
    _act_outside(f"sent the summary to {to}")


def begin(relay: Relay) -> tuple[Run, Handoff]:
    """Let a lead work for Ana, up to the handoff to the drafter, which nobody has accepted."""
    lead = relay.start(
        INTENT,
        by="user:ana",
        may_delegate=["write:data/**", f"write:{SUMMARY}", "call:order_chart", "call:send_summary"],
    )
    lead.record(
        Claim("what counts as an anomaly, in per cent", key="threshold", value=10),
        Decision("compare with the quarter before, not with the plan", why="agreed with Ana two weeks ago"),
        Exclusion("Islands", why="their books close in October"),
    )
    with lead.hand_off("compiler", "Compile the sales of the third quarter", may=["write:data/**"]) as compiler:
        regions = compiler.call(pull_sales, _FIGURES)
        compiler.report(f"{regions} regions in {_FIGURES}")
    lead.record(WorkItem(f"the sales of {regions} regions are in {_FIGURES}"))
    with lead.hand_off("analyst", "Flag the regions that are off", may=[f"write:{_ANOMALIES}"]) as analyst:
        flagged = analyst.call(flag_anomalies, _ANOMALIES, *_agreed(analyst))
        analyst.report(f"{', '.join(flagged)}, in {_ANOMALIES}")
    lead.record(WorkItem(f"{len(flagged)} regions are flagged in {_ANOMALIES}"))
    may = [f"write:{SUMMARY}", "call:order_chart", "call:send_summary"]
    return lead, lead.hand_off("drafter", DRAFT_TASK, may=may)


def draft(drafter: Run) -> None:
    """Do the drafter's work: three calls, of which the first and the last are seen outside."""
    regions = [row["region"] for row in _read_rows(_ANOMALIES)]
    chart = drafter.call(order_chart, regions)
    drafter.call(write_summary, SUMMARY, chart, *_agreed(drafter))
    drafter.call(send_summary, "ana")
    drafter.report(f"the summary is in {SUMMARY}", open_questions=["what happened in the South?"])


def _agreed(run: Run) -> tuple[int, list[str]]:
    """Return the threshold and the exclusions, as they were handed over."""
    items = run.baton.items
    (threshold,) = (item.value for item in items if isinstance(item, Claim) and item.key == "threshold")
    return int(threshold or 0), [item.text for item in items if isinstance(item, Exclusion)]


def _change(row: dict[str, str]) -> int:
    before, now = int(row["q2"]), int(row["q3"])
    return round(100 * (now - before) / before)


def _act_outside(what: str) -> None:
    with Path(OUTSIDE).open("a", encoding="utf-8") as file:
        file.write(what + "\n")


def _read_rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write_rows(path: str, rows: tuple[tuple[object, ...], ...]) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
