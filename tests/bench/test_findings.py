"""Labelled traces give the precision and recall of each kind of finding, with an interval."""

import json
from pathlib import Path

import pytest

from bench.findings import KindScore, Share, score


def trace(place: Path, name: str, *, calls: int, labels: str | None = None) -> None:
    """Write a trace with the same call again and again."""
    said = {"session": name, "at": "2026-11-17T10:00:00Z"}
    events: list[dict[str, object]] = [{"type": "session", "agent": "lead"}, {"type": "prompt", "text": "Fix it"}]
    for number in range(calls):
        events += [
            {"type": "call", "call": str(number), "tool": "write", "arguments": {"path": "a"}},
            {"type": "result", "call": str(number), "ok": True},
        ]
    events.append({"type": "end", "status": "completed"})
    lines = "".join(json.dumps(said | event) + "\n" for event in events)
    (place / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    if labels is not None:
        (place / f"{name}.labels").write_text(labels, encoding="utf-8")


def test_what_people_see_is_compared_with_what_is_found(tmp_path: Path) -> None:
    """One finding that both see, one that nobody labelled, one that was not found."""
    trace(tmp_path, "agreed", calls=3, labels="repeated-step\n")
    trace(tmp_path, "unlabelled", calls=3)
    trace(tmp_path, "missed", calls=1, labels="repeated-step loop\n")

    assert [
        KindScore("loop", Share(0, 0), Share(0, 1)),
        KindScore("repeated-step", Share(1, 2), Share(1, 2)),
    ] == list(score(tmp_path))


def test_a_label_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """A misspelled code would count as a finding that was missed."""
    trace(tmp_path, "one", calls=1, labels="repeated-steps")

    with pytest.raises(SystemExit, match="no finding called repeated-steps"):
        list(score(tmp_path))


def test_few_traces_say_little() -> None:
    """One of one may be anything above a fifth; a hundred of a hundred is nearly all."""
    assert (0.0, 1.0) == Share(0, 0).interval
    assert pytest.approx((0.206, 1.0), abs=0.01) == Share(1, 1).interval
    assert Share(100, 100).interval[0] > 0.96
    assert "-" == str(Share(0, 0))
