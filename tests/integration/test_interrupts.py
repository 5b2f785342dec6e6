"""Ctrl-C at any moment: the close never hangs, and nothing is left waiting under a run that has failed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import RunState
from batonpass.store.factory import open_store

ROUNDS = 60
_OPEN = (State.READY, State.CLAIMED, State.RUNNING, State.OFFERED, State.HELD, State.ASKED)


@pytest.mark.parametrize("seed", [1, 2])
def test_an_interrupt_at_any_moment_leaves_no_work_under_a_failed_run(tmp_path: Path, seed: int) -> None:
    """A close asks the store what its run has handed off, because an interrupted offer may be durable.

    And no interrupt leaves a lock taken, for which the close would wait for ever.
    """
    _storm(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path, seed, ROUNDS)


@pytest.mark.postgres
def test_an_interrupt_leaves_nothing_on_a_server_either(tmp_path: Path, postgres_url: str) -> None:
    """There a commit may be under way when the interrupt comes, and end after the close has looked."""
    _storm(postgres_url, tmp_path, 3, ROUNDS // 2)


def _storm(url: str, tmp_path: Path, seed: int, rounds: int) -> None:
    program = [
        sys.executable,
        "-m",
        "tests.integration.interrupted",
        url,
        str(tmp_path / "home"),
        str(rounds),
        str(seed),
    ]

    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)

    # The interpreter itself may say on stderr that an interrupt came inside a weak reference's callback.
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > rounds / 2
    store = open_store(url)
    with store.view() as view:
        roots = list(view.find_runs(roots=True))
        left = [(root.id, child.state) for root in roots for child in view.find_handoffs(root=root.id, states=_OPEN)]
    store.close()
    assert {RunState.FAILED} == {root.state for root in roots if root.state is not RunState.COMPLETED}
    assert [] == left
