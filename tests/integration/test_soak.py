"""The short form of `make soak`: many clients, a worker that is killed, a restart of the server; nothing is lost."""

from pathlib import Path

import pytest

from tests.soak.soak import Plan, Soak


@pytest.mark.slow
def test_no_acknowledged_handoff_is_lost_and_nobody_stands_still(tmp_path: Path) -> None:
    """Everybody gets on after the restart, listeners miss nothing and get nothing twice, and the ledger verifies."""
    plan = Plan(clients=8, seconds=2, workers=1, listeners=2, pause=0.2, kill_every=1.5)
    outcome = Soak(tmp_path, plan).play()

    assert [] == outcome.problems
    assert (True, 2) == (outcome.acknowledged >= 2 * plan.clients, len(outcome.drained))
    assert outcome.killed > 0
