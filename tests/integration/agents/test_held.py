"""A held call of a native agent: one process asks, a second one approves, a third one goes on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from batonpass import Relay

pytestmark = pytest.mark.slow  # each is several processes

PROGRAM = Path(__file__).with_name("held_program.py")
ROOT = Path(__file__).parents[3]
CLI = "from batonpass.cli.main import main; main()"


def ran(*command: str) -> str:
    """Return what a process of its own printed."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def played(ledger: Path, shape: str) -> dict[str, Any]:
    """Run the program once, always with the same key."""
    return dict(json.loads(ran(str(PROGRAM), str(ledger), "payment-1", shape)))


@pytest.mark.parametrize("shape", ["alone", "lead", "worker"])
def test_another_process_approves_and_the_work_goes_on(tmp_path: Path, shape: str) -> None:
    """Nothing is looked up twice, exactly the approved payment is made, once, and the record verifies."""
    ledger = tmp_path / "ledger.db"
    first = played(ledger, shape)
    [held] = first["held"]
    log = tmp_path / "log"
    before = log.read_text().splitlines()

    assert ("held", 0) == (first["state"], before.count("paid bob"))
    ran(
        "-c",
        "from batonpass.cli.main import main; main()",
        "handoff",
        "approve",
        held[-6:],
        "--by",
        "user:ana",
        "--ledger",
        str(ledger),
    )
    again = played(ledger, shape)
    done = log.read_text().splitlines()

    assert ("completed", True) == (again["state"], "paid bob" in again["output"])
    assert (1, 1) == (done.count("looked"), done.count("paid bob"))
    with Relay.open(str(ledger)) as relay:
        relay.verify()
