"""What the tests of handoffs share: a ledger in memory and one in a file, verified after every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Places


@pytest.fixture(params=["memory:", "sqlite:///{}/ledger.db"], ids=["in memory", "in a file"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Return a ledger on which relays can be opened."""
    places = Places(request.param.format(tmp_path), tmp_path / "home")
    yield places
    places.close()


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return a relay."""
    return places.relay()


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root run."""
    return relay.start("Fix invoice rounding", by=ANA)
