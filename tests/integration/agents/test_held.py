"""A held call of a native agent: one process asks, a second one approves, a third one goes on."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from batonpass import Relay
from tests.warm_program import run_program, run_script

pytestmark = pytest.mark.slow  # each is several processes

PROGRAM = Path(__file__).with_name("held_program.py")
ROOT = Path(__file__).parents[3]


def played(ledger: Path, shape: str) -> dict[str, Any]:
    """Run the program once, in a process of its own, always with the same key."""
    done = run_script(ROOT, PROGRAM, str(ledger), "payment-1", shape)
    assert 0 == done.returncode, done.stdout
    return dict(json.loads(done.stdout))


def approve(ledger: Path, held: str) -> None:
    """Let a person approve, at the command line."""
    command = ["handoff", "approve", held[-6:], "--by", "user:ana", "--ledger", str(ledger)]
    done = run_program(ROOT, command, os.environ, patience=300)
    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("shape", ["alone", "lead", "worker"])
def test_another_process_approves_and_the_work_goes_on(tmp_path: Path, shape: str) -> None:
    """Nothing is looked up twice, exactly the approved payment is made, once, and the record verifies."""
    ledger = tmp_path / "ledger.db"
    first = played(ledger, shape)
    [held] = first["held"]
    log = tmp_path / "log"
    before = log.read_text().splitlines()

    assert ("held", 0) == (first["state"], before.count("paid bob"))
    approve(ledger, held)
    again = played(ledger, shape)
    done = log.read_text().splitlines()

    assert ("completed", True) == (again["state"], "paid bob" in again["output"])
    assert (1, 1) == (done.count("looked"), done.count("paid bob"))
    with Relay.open(str(ledger)) as relay:
        relay.verify()
