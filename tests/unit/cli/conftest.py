"""A desk for every test of the command line, and an environment that says nothing."""

from pathlib import Path

import pytest

from tests.unit.cli.desk import Desk, record_in


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let no setting of whoever runs the tests reach them."""
    for name in ("BATONPASS_LEDGER", "BATONPASS_HOME", "BATONPASS_DEBUG", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "tess")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk whose ledger holds one tree."""
    return record_in(tmp_path)
