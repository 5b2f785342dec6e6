"""Precision and recall of each kind of finding on labelled traces, with intervals.

    python bench/findings.py DIR

DIR has traces as `batonpass import jsonl` reads them (docs/spec/events.md), and beside each NAME.jsonl a NAME.labels:
the codes of the findings that a person sees in it, one a line. A trace without labels is clean.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Final, NamedTuple

from batonpass.review.catalogue import KINDS

_SURE: Final = 1.96  # standard deviations: 95 of 100 intervals hold the true value
_OK: Final = frozenset({0, 1})  # 1: there are findings


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


def score(traces: Path) -> Iterator[KindScore]:
    """Yield the score of each kind that was found or that somebody sees."""
    found: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for trace in sorted(traces.glob("*.jsonl")):
        labels = trace.with_suffix(".labels")
        said = set(labels.read_text(encoding="utf-8").split()) if labels.exists() else set()
        if unknown := said - KINDS.keys():
            raise SystemExit(f"{labels}: there is no finding called {', '.join(sorted(unknown))}")
        told = review(trace)
        found.update(told)
        seen.update(said)
        both.update(told & said)
    for code in KINDS:
        if found[code] or seen[code]:
            yield KindScore(code, Share(both[code], found[code]), Share(both[code], seen[code]))


def review(trace: Path) -> set[str]:
    """Return the codes of what is found in one trace, in a ledger of its own."""
    with tempfile.TemporaryDirectory() as place:
        ledger = f"sqlite:///{place}/ledger.db"
        _batonpass("import", "jsonl", str(trace.absolute()), "--ledger", ledger, place=place)
        answer = _batonpass("review", "--since", "9999w", "--json", "--ledger", ledger, place=place)
    return {finding["kind"] for finding in json.loads(answer)["findings"]}


def _batonpass(*words: str, place: str) -> str:
    command = [str(Path(sys.executable).with_name("batonpass")), *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode not in _OK:
        raise SystemExit(done.stderr or done.stdout)
    return done.stdout


def main(traces: Path) -> None:
    """Print the table."""
    print("| finding | precision | recall |\n|---|---|---|")
    for one in score(traces):
        print(f"| {one.code} | {one.precision} | {one.recall} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
