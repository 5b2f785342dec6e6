"""The rows of frameworks: each beside itself without us, and beside what it keeps by itself."""

from pathlib import Path

import pytest

from bench import framework_cost
from bench.effort import Effort


def test_rows_of_a_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A framework with a checkpointer of its own has one row more for each act."""
    (tmp_path / "langgraph").mkdir()
    (tmp_path / "langgraph" / ".installed").touch()
    taken = {"without": [0.001], "with": [0.002], "own": [0.004]}
    monkeypatch.setattr(framework_cost, "_ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(framework_cost, "_play", lambda *_: {"call": taken, "handoff": {**taken, "with": [0.008]}})

    rows = framework_cost.measure(tmp_path, Effort.short())

    assert [2.0, 0.5, 8.0, 2.0] == [row.ratio for row in rows]
    assert {"the same without us", "the same with its SqliteSaver"} == {row.against for row in rows}


def test_nothing_is_measured_where_nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row says what to do."""
    monkeypatch.setattr(framework_cost, "_ENVIRONMENTS", tmp_path)

    (row,) = framework_cost.measure(tmp_path, Effort.short())

    assert "make test-adapters" in row.against
