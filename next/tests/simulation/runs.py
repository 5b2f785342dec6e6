"""One run of a plan, the smallest plan that fails in the same way, and both in words."""

import atexit
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.simulation.oracle import judge
from tests.simulation.plans import Plan, Program, describe, make_plan, smaller
from tests.simulation.ports import Request
from tests.simulation.programs import EXPECTED, Agent
from tests.simulation.scheduler import HungError, Looker, Simulation
from tests.simulation.world import World

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a disk adds nothing: what is simulated does not outlive us
_RELAYS: Final = 2
_ROOT_KEY: Final = bytes(range(32))


class Verdict(Struct):
    """What was wrong in a run, the worst first, and what happened in it."""

    wrong: list[str]
    trace: list[str]
    receipts: int = 0

    @property
    def kind(self) -> str:
        """What was wrong first, in a word."""
        return self.wrong[0].partition(":")[0] if self.wrong else ""


def run(plan: Plan) -> Verdict:
    """Return the verdict about a plan. The same plan has the same trace, to the last id."""
    with _directory() as directory:
        if plan.is_fresh:
            _prepare(directory)
        else:
            shutil.copytree(_template(), directory, dirs_exist_ok=True)
        return _run(plan, directory)


def _run(plan: Plan, directory: Path) -> Verdict:
    sim = Simulation(plan.seed, plan.switch, plan.faults)
    with Looker(directory / "ledger.db") as look:
        world, wrong, requests = World(sim, plan, directory, look), list[str](), list[Request]()
        for program in plan.programs:
            sim.spawn(Agent(world, program, requests).main, begins=program.begins)
        try:
            sim.run()
            sim.spawn(Agent(world, Program(is_keyed=False, steps=()), requests).heal)
            sim.run()
        except HungError as error:
            wrong.append(f"hung: {error}")
        errors = [task.raised for task in sim.tasks if task.raised and not isinstance(task.raised, EXPECTED)]
        wrong += [f"error: {error!r}" for error in errors]
        wrong += ["starved: by a transaction that was left open"] * sim.starved
        wrong += judge(world)
        verdict = Verdict(wrong, list(sim.trace), world.length())
        sim.end()
        return verdict


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="simulation-", dir=_MEMORY if _MEMORY.exists() else None) as name:
        yield Path(name)


def _prepare(directory: Path) -> None:
    """Make the directories of the relays, which share the root key."""
    for number in range(_RELAYS):
        keys = directory / f"relay{number}"
        keys.mkdir(mode=0o700)
        (keys / "root.key").write_bytes(_ROOT_KEY)
        (keys / "root.key").chmod(0o600)


@cache
def _template() -> Path:
    """Return a directory with a ledger in which both relays are enrolled."""
    directory = Path(tempfile.mkdtemp(prefix="simulation-", dir=_MEMORY if _MEMORY.exists() else None))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    _prepare(directory)
    programs = tuple(Program(is_keyed=False, steps=(), relay=number) for number in range(_RELAYS))
    plan = replace(make_plan(0), faults=(), programs=programs)
    verdict = _run(plan, directory)
    if verdict.wrong:
        raise HungError(f"no ledger could be made: {verdict.wrong}")
    return directory


def try_seed(seed: int) -> tuple[int, list[str], int]:
    """Return a seed, what is wrong with it, and how many receipts it made."""
    verdict = run(make_plan(seed))
    return seed, verdict.wrong, verdict.receipts


def shrink(plan: Plan, kind: str, seconds: float = 20) -> Plan:
    """Return the smallest plan found that is wrong in the same way: fewer faults, processes, steps and switches."""
    until, candidates = time.monotonic() + seconds, smaller(plan)
    while time.monotonic() < until and (candidate := next(candidates, None)):
        # Also with other schedules: whatever is left out moves all that follows.
        tried = (replace(candidate, seed=seed) for seed in range(plan.seed, plan.seed + 6))
        if found := next((each for each in tried if run(each).kind == kind), None):
            plan, candidates = found, smaller(found)
    return plan


def explain(plan: Plan) -> str:
    """Return a plan and what happens in it."""
    verdict = run(plan)
    return "\n".join([*describe(plan), *verdict.trace, *(f"==> {each}" for each in verdict.wrong)])
