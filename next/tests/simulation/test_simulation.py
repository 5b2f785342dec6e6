"""The simulation finds nothing in the core, and what is planted in a copy of it."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.simulation.plans import Plan, Program, Step, make_plan
from tests.simulation.planted import PLANTED, plant, search
from tests.simulation.runs import run, shrink
from tests.simulation.scheduler import Fault, Kind

SEEDS = 300
BLOCK = 10
POINTS = 120
# Planted faults that each run of the tests looks for, from a seed on; `-m planted` looks for all of them.
SHOWN = {"an append that was cut short leaves a run sure of itself": 0, "a call in doubt is made again": 0}


def a_plan(*faults: Fault, task: tuple[Step, ...], programs: int = 1) -> Plan:
    """Return a plan of processes that begin a root run, and of one that comes later and takes over what it finds."""
    roots = [Program(is_keyed=False, steps=(Step("root", how="enforced"),)) for _ in range(programs)]
    later = Program(is_keyed=False, steps=(Step("rescue", how="skip"), Step("resume")), begins=300)
    child = (Step("call", 1), Step("call", 1, "fails"))
    return Plan(seed=1, switch=0.1, tasks=(task, child), programs=(*roots, later), faults=faults)


@pytest.mark.parity(
    "sim-request-repeated-at-once",
    "sim-equal-calls-have-own-keys",
    "sim-no-transaction-stays-open",
    "sim-retried-then-killed-is-still-open-work",
    "sim-one-outcome-a-call",
    "sim-fenced-run-makes-no-call",
    "sim-fenced-run-hears-fenced",
    "sim-in-doubt-for-its-own-run",
    "sim-listed-heads-mean-at-least",
    "sim-repeats-are-answered-alike",
    "sim-what-verify-refuses-cannot-be-written",
)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nothing_is_found(first: int) -> None:
    """Three hundred schedules break no rule of the oracle."""
    verdicts = {seed: run(make_plan(seed)).wrong for seed in range(first, first + BLOCK)}

    assert {} == {seed: wrong for seed, wrong in verdicts.items() if wrong}


@pytest.mark.parity("interrupt-leaks-no-lock", "interrupt-leaves-a-call-in-doubt", "close-before-withdrawals")
@pytest.mark.parametrize("kind", ["interrupt", "kill"])
@pytest.mark.parametrize("block", range(4))
def test_a_process_may_be_cut_short_at_any_point(kind: Kind, block: int) -> None:
    """At each point of an enforced run with calls and a child it is interrupted or killed, and others take over."""
    task = (Step("call", 1), Step("child", 1, "at once"), Step("child", 1, "here"), Step("call", 1, "inexact"))
    verdicts = {nth: run(a_plan(Fault(0, "", nth, kind), task=task)).wrong for nth in range(1 + block, POINTS, 4)}

    assert {} == {nth: wrong for nth, wrong in verdicts.items() if wrong}


@pytest.mark.parity("sim-in-doubt-for-its-own-run", "sim-one-outcome-a-call")
@pytest.mark.parametrize("kind", ["lose", "fail"])
def test_any_commit_may_fail_or_lose_its_answer(kind: Kind) -> None:
    """Whichever commit is cut short, no call is made twice, no result is delivered that is not recorded."""
    task = (Step("call", 1), Step("child", 1, "at once"), Step("call", 1, "fails"))
    verdicts = {nth: run(a_plan(Fault(0, "BEGIN", nth, kind), task=task)).wrong for nth in range(1, 16)}

    assert {} == {nth: wrong for nth, wrong in verdicts.items() if wrong}


@pytest.mark.parametrize("seed", [0, 7, 11])
def test_a_seed_replays_exactly(seed: int) -> None:
    """The same plan has the same trace, to the last id."""
    assert run(make_plan(seed)).trace == run(make_plan(seed)).trace


def test_a_seed_replays_exactly_in_another_process() -> None:
    """No order comes out of a set: with other hashes of texts the trace is the same."""
    seed = 3
    program = f"""
from hashlib import sha256
from tests.simulation.plans import make_plan
from tests.simulation.runs import run
print(sha256("\\n".join(run(make_plan({seed})).trace).encode()).hexdigest())
"""
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": root}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert sha256("\n".join(run(make_plan(seed)).trace).encode()).hexdigest() == told.stdout.strip()


def test_a_plan_shrinks_to_what_fails() -> None:
    """Of a plan with much in it, what is not needed to fail in the same way is left out."""
    plan = a_plan(Fault(0, "no such point", 1, "kill"), task=(Step("call", 1), Step("broken"), Step("call", 2)))

    smallest = shrink(plan, run(plan).kind, seconds=5)

    assert ("error", (), (Step("broken"),)) == (run(smallest).kind, smallest.faults, smallest.tasks[0])


@pytest.mark.parametrize("name", SHOWN)
def test_a_fault_is_found(name: str, tmp_path: Path) -> None:
    """In a copy of the core with a fault the simulation fails, and names the seed."""
    plant(name, tmp_path)

    assert "seed " == search(tmp_path, first=SHOWN[name], seeds=200)[:5]


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """Within two thousand seeds."""
    plant(name, tmp_path)

    assert "seed " == search(tmp_path)[:5]
