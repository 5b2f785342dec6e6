"""A key means once: across processes, after a kill, and for two at the same moment."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from batonpass import Relay
from tests.warm_program import run_script

pytestmark = pytest.mark.slow  # each is several processes

PROGRAM = Path(__file__).with_name("keyed_program.py")
ROOT = Path(__file__).parents[3]


def begin(
    ledger: Path, what: str, key: str = "mail-1", *, session: str = "s", shape: str = "alone"
) -> CompletedProcess[str]:
    """Run the program in a process of its own, to its end."""
    return run_script(ROOT, PROGRAM, str(ledger), what, key, session, shape)


def ended(process: CompletedProcess[str]) -> dict[str, Any]:
    """Return what it printed."""
    assert 0 == process.returncode, process.stdout
    return dict(json.loads(process.stdout))


def log(ledger: Path) -> list[str]:
    """Return what the processes did, in order."""
    return ledger.with_name("log").read_text().splitlines()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return where the ledger of the processes is."""
    return tmp_path / "ledger.db"


def test_another_process_gets_the_same_result_without_a_model(ledger: Path) -> None:
    """The second process asks no model, makes no call, and says that it reused the result."""
    first, again = ended(begin(ledger, "finish")), ended(begin(ledger, "finish"))

    assert (first["output"], first["run"], False) == (again["output"], again["run"], first["reused"])
    assert again["reused"]
    assert (4, 1) == (sum("asked" in line for line in log(ledger)), log(ledger).count("sent to ana"))


def test_a_killed_run_goes_on_in_another_process(ledger: Path) -> None:
    """Killed in its third call, it goes on from its messages: the mail is not sent twice, the model not asked again."""
    killed = begin(ledger, "die")
    before = log(ledger)
    resumed = ended(begin(ledger, "finish"))

    assert -9 == killed.returncode
    assert ("done: seen", False) == (resumed["output"], resumed["reused"])
    assert 1 == log(ledger).count("sent to ana")
    # It is asked about the third step once more, because that answer was never recorded, and never about the first two.
    assert [f"asked after {number} results; knows False" for number in (2, 3)] == log(ledger)[len(before) :]
    with Relay.open(str(ledger)) as relay, relay.store.view() as view:
        assert [resumed["run"]] == [run.id for run in view.find_runs()]
        relay.verify()


def test_a_killed_run_leaves_its_session_alive(ledger: Path) -> None:
    """What it wrote down before it was killed is told to the next run of the session, though nothing was closed."""
    killed = begin(ledger, "die", key="")
    ended(begin(ledger, "next", key=""))

    assert -9 == killed.returncode
    assert "asked after 0 results; knows True" == log(ledger)[-1]


def test_two_at_the_same_moment_are_one(ledger: Path) -> None:
    """The second process waits for the first, and gets its result."""
    with ThreadPoolExecutor() as threads:
        results = [ended(process) for process in threads.map(begin, [ledger] * 2, ["slow"] * 2)]

    assert 1 == len({result["run"] for result in results})
    assert [False, True] == sorted(result["reused"] for result in results)
    assert (4, 1) == (sum("asked" in line for line in log(ledger)), log(ledger).count("sent to ana"))


@pytest.mark.parametrize("shape", ["lead", "crew"])
def test_a_killed_tree_goes_on_in_another_process(ledger: Path, shape: str) -> None:
    """The child that was killed goes on from its messages; what its lead or its crew had finished is not done again."""
    killed = begin(ledger, "die", shape=shape)
    resumed = ended(begin(ledger, "finish", shape=shape))
    again = ended(begin(ledger, "finish", shape=shape))

    assert (-9, True, resumed["output"]) == (killed.returncode, "done: seen" in resumed["output"], again["output"])
    assert (1, True) == (log(ledger).count("sent to ana"), log(ledger).count("the first is asked") <= 1)
    assert 1 == sum("asked after 0 results" in line for line in log(ledger))
    with Relay.open(str(ledger)) as relay, relay.store.view() as view:
        assert {resumed["run"]} == {run.root for run in view.find_runs()}
        assert 2 == max(handoff.attempt for handoff in view.find_handoffs())
        relay.verify()
