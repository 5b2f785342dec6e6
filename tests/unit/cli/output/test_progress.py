"""A bar for work that takes longer than a moment."""

import sys

import pytest

from batonpass.cli.output import progress
from batonpass.cli.output.progress import progress_bar


def test_nobody_looking_means_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe nothing is drawn, and the work is not asked to tell."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)

    with progress_bar("verifying") as told:
        assert told is None


def test_quick_work_has_no_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is done in a moment needs no bar, and rich is not even imported."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("verifying") as told:
        assert told is not None
        told(1, 2)

    assert ("", "") == capsys.readouterr()


def test_long_work_has_a_bar_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """After a moment the bar says what is done and how much of it, and never on stdout."""
    monkeypatch.setattr(progress, "_MOMENT", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("verifying") as told:
        assert told is not None
        told(1000, 4000)
        told(2000, 4000)
    out, err = capsys.readouterr()

    assert ("", True, True) == (out, "verifying" in err, "/4000" in err)
