"""The stage of every column."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.suite import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Return a fresh directory, and work there."""
    monkeypatch.chdir(tmp_path)
    made = Stage(tmp_path)
    yield made
    made.close()
