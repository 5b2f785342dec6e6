"""An empty project, and nothing of whoever runs the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.relay import Relay
from tests.unit.adapters.claude_code.histories import History


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return what Claude Code keeps about a project: nothing yet."""
    project = tmp_path / "shop"
    project.mkdir()
    return History(tmp_path, project)


@pytest.fixture
def relay() -> Iterator[Relay]:
    """Return a relay whose ledger is whole after every test."""
    with Relay.open("memory:") as relay:
        yield relay
        if relay.store.founded():
            relay.verify()
