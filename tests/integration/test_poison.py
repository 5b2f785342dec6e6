"""A task that kills every worker: attempts end, and nobody tries it again by itself."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.model.base.lifecycle import State
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay


@pytest.mark.parametrize("where", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_task_that_kills_its_workers_is_parked(request: pytest.FixtureRequest, tmp_path: Path, where: str) -> None:
    """Twenty-five workers would die of it; five do, and the sixth lives, sweeps, and leaves it alone."""
    url = request.getfixturevalue("postgres_url") if where == "postgres" else f"sqlite:///{tmp_path / 'ledger.db'}"
    home = tmp_path / "home"
    with Relay.open(url, home=home) as relay:
        lead = relay.start("Edit it", by="user:ana")
        poisoned = lead.hand_off("editor", "The poison", carrier="worker")
        died = []
        for _ in range(25):
            program = [sys.executable, "-m", "tests.integration.poisoned_worker", url, str(home), poisoned.id]
            died.append(subprocess.run(program, timeout=60, check=False).returncode)
            if died[-1] == 0:
                break

        assert [-signal.SIGKILL] * HandoffPolicy().attempts + [0] == died
        result = poisoned.result()
        assert (State.FAILED, 5, "handoff.attempts_exhausted") == (result.state, result.attempt, result.error)
        assert "5 attempts" in result.reason
        assert 0 == relay.sweep()
        lead.close()
        verify_ledger(relay.store)
