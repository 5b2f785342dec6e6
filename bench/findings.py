"""Precision and recall of each kind of finding on labelled traces, with intervals.

    python bench/labelled.py DIR    # makes a set
    python bench/findings.py DIR    # prints the table, and what was not as it is labelled

bench/README.md says what is in DIR: NAME.jsonl (docs/spec/events.md) or NAME.db (a ledger), and NAME.labels.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from typing import Final, NamedTuple

from batonpass.review.catalogue import KINDS
from batonpass.review.review import find_reviewed, review_roots
from batonpass.store.factory import open_store

_SURE: Final = 1.96  # standard deviations: 95 of 100 intervals hold the true value
_LEDGER: Final = ".db"
_LOG: Final = ".jsonl"
_EVER: Final = datetime.min.replace(tzinfo=UTC)


class Share(NamedTuple):
    """A share of a count, with the interval in which the true share is likely to be (Wilson)."""

    part: int
    whole: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return both ends of the interval; everything is possible if nothing was counted."""
        if not self.whole:
            return 0.0, 1.0
        share, spread = self.part / self.whole, _SURE**2 / self.whole
        middle = (share + spread / 2) / (1 + spread)
        half = _SURE / (1 + spread) * sqrt(share * (1 - share) / self.whole + spread / (4 * self.whole))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.part}/{self.whole} ({low:.2f}-{high:.2f})" if self.whole else "-"


class KindScore(NamedTuple):
    """How well one kind of finding agrees with people."""

    code: str
    precision: Share
    recall: Share


class Reading(NamedTuple):
    """A trace, what people see in it, and what was found."""

    trace: Path
    labels: frozenset[str]
    found: frozenset[str]


def read_traces(directory: Path) -> Iterator[Reading]:
    """Review every trace of a directory. Raises `SystemExit` if one cannot be read, or there is none."""
    traces = sorted(path for path in directory.iterdir() if path.suffix in {_LEDGER, _LOG})
    if not traces:
        raise SystemExit(f"{directory}: there is no NAME{_LOG} and no NAME{_LEDGER}")
    for trace in traces:
        yield Reading(trace, read_labels(trace), review(trace))


def read_labels(trace: Path) -> frozenset[str]:
    """Return the codes that somebody sees in a trace. Raises `SystemExit` if nobody looked, or a code is unknown."""
    labels = trace.with_suffix(".labels")
    if not labels.exists():
        raise SystemExit(f"{labels} is not there; if nothing is to be found in {trace.name}, let it be empty")
    lines = (line.partition("#")[0].split() for line in labels.read_text(encoding="utf-8").splitlines())
    said = frozenset(code for line in lines for code in line)
    if unknown := said - KINDS.keys():
        raise SystemExit(f"{labels}: there is no finding called {', '.join(sorted(unknown))}")
    return said


def score(readings: Iterable[Reading]) -> Iterator[KindScore]:
    """Yield the score of each kind that was found or that somebody sees."""
    found: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for one in readings:
        found.update(one.found)
        seen.update(one.labels)
        both.update(one.found & one.labels)
    for code in KINDS:
        if found[code] or seen[code]:
            yield KindScore(code, Share(both[code], found[code]), Share(both[code], seen[code]))


def review(trace: Path) -> frozenset[str]:
    """Return the codes of what is found in one trace; a log is imported into a ledger of its own."""
    if trace.suffix == _LEDGER:
        return _review_ledger(trace)
    with tempfile.TemporaryDirectory() as place:
        ledger = Path(place) / "ledger.db"
        command = [str(Path(sys.executable).with_name("batonpass")), "import", "jsonl", str(trace.absolute())]
        command += ["--ledger", f"sqlite:///{ledger}"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout)
        return _review_ledger(ledger)


def _review_ledger(ledger: Path) -> frozenset[str]:
    with closing(open_store(f"sqlite:///{ledger.absolute()}")) as store, store.view() as view:
        reviewed = review_roots(view, [*find_reviewed(view, _EVER)], datetime.now(UTC))
    return frozenset(finding.kind.code for finding in reviewed.findings)


def main(directory: Path) -> None:
    """Print the table, then each trace that was not found as it is labelled."""
    readings = [*read_traces(directory)]
    print("| finding | precision | recall |\n|---|---|---|")
    for one in score(readings):
        print(f"| {one.code} | {one.precision} | {one.recall} |")
    for reading in readings:
        wrong = [f"missed {code}" for code in sorted(reading.labels - reading.found)]
        wrong += [f"found {code}" for code in sorted(reading.found - reading.labels)]
        if wrong:
            print(f"{reading.trace.name}: {', '.join(wrong)}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
