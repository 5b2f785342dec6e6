"""Labelled traces give the precision and recall of each kind of finding, with an interval."""

import json
from pathlib import Path

import pytest

from bench.findings import KindScore, Share, main, read_labels, read_traces, score
from bench.labelled import make_set


def trace(place: Path, name: str, *, calls: int, labels: str | None) -> None:
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
    trace(tmp_path, "clean", calls=3, labels="# she writes it three times on purpose: repeated-step\n")
    trace(tmp_path, "missed", calls=1, labels="repeated-step loop\n")

    assert [
        KindScore("loop", Share(0, 0), Share(0, 1)),
        KindScore("repeated-step", Share(1, 2), Share(1, 2)),
    ] == list(score(read_traces(tmp_path)))


def test_a_label_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """A misspelled code would count as a finding that was missed."""
    trace(tmp_path, "one", calls=1, labels="repeated-steps")

    with pytest.raises(SystemExit, match="no finding called repeated-steps"):
        read_labels(tmp_path / "one.jsonl")


def test_a_trace_that_nobody_labelled_is_refused(tmp_path: Path) -> None:
    """Nobody has looked at it, so it is not clean; nor is a directory without traces a good result."""
    trace(tmp_path, "one", calls=1, labels=None)

    with pytest.raises(SystemExit, match=r"one.labels is not there"):
        list(read_traces(tmp_path))
    (tmp_path / "one.jsonl").unlink()
    with pytest.raises(SystemExit, match=r"there is no NAME.jsonl and no NAME.db"):
        list(read_traces(tmp_path))


@pytest.mark.slow
def test_whatever_is_planted_in_a_generated_set_is_found_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind among clean work; near misses are not taken for it."""
    monkeypatch.setenv("BATONPASS_HOME", str(tmp_path / "keys"))
    make_set(tmp_path / "set", traces=1, seed=3)
    main(tmp_path / "set")
    printed = capsys.readouterr()

    assert "" == printed.err
    assert "| ghost-task | 1/1 (0.21-1.00) | 1/1 (0.21-1.00) |" in printed.out
    assert "| repeated-step | 2/2 (0.34-1.00) | 2/2 (0.34-1.00) |" in printed.out  # in a ledger, and in a log


def test_few_traces_say_little() -> None:
    """One of one may be anything above a fifth; a hundred of a hundred is nearly all."""
    assert (0.0, 1.0) == Share(0, 0).interval
    assert pytest.approx((0.206, 1.0), abs=0.01) == Share(1, 1).interval
    assert Share(100, 100).interval[0] > 0.96
    assert "-" == str(Share(0, 0))
