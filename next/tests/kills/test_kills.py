"""Real processes that are killed or frozen before and after every commit of every act, and others that go on.

pytest tests/kills               every kill on SQLite, and a sample of the rest
pytest tests/kills --kills=all   every kill and every freeze on SQLite and PostgreSQL (or BATONPASS_KILLS=all)
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from tests.kills.story import EFFECTS

if TYPE_CHECKING:
    from tests.conftest import Postgres

ROOT: Final = Path(__file__).parents[2]
PARTS: Final = 3
SAMPLE: Final = {("sqlite", "kill"): 1, ("sqlite", "freeze"): 4, ("postgres", "kill"): 9, ("postgres", "freeze"): 21}
Answer: TypeAlias = dict[str, Any]
Point: TypeAlias = tuple[int, str]


class Program:
    """The small process that forks those that are stopped, and a fresh ledger for each of them."""

    def __init__(self, directory: Path, ledgers: Callable[[Path], str]) -> None:
        self._directory = directory
        self._ledgers = ledgers
        command = [sys.executable, "-m", "tests.kills.stopping"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
        )
        self.reference = self.do("play", 0, "undisturbed")

    def do(self, how: str, commit: int, when: str) -> Answer:
        """Play the story, to its end or until it is stopped and healed, and return what came of it."""
        directory = self._directory / f"{how}-{commit}-{when}"
        directory.mkdir(parents=True)
        command = {"how": how, "commit": commit, "when": when, "directory": str(directory)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**command, "ledger": self._ledgers(directory)}) + "\n")
        self._process.stdin.flush()
        answer: Answer = json.loads(self._process.stdout.readline())
        return answer

    def points(self, *, is_all: bool) -> list[Point]:
        """Return where it can be stopped: before each commit, and after each that is not refused.

        Right after a commit is right before the next, but where a tool works in between: that is enough, if not all are
        asked for.
        """
        kinds, lengths = self.reference["kinds"], self.reference["lengths"]
        commits = range(1, len(lengths))
        last_kinds = {commit: kinds[lengths[commit] - 1] for commit in commits if lengths[commit] > lengths[commit - 1]}
        afters = [
            commit for commit, kind in last_kinds.items() if is_all or kind == "tool.requested" or commit == commits[-1]
        ]
        return [(commit, "before") for commit in commits] + [(commit, "after") for commit in afters]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], ids=["sqlite", "postgres"]
)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def program(store: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Return the program on one of the two stores, played once without disturbance."""
    with ExitStack() as databases:

        def ledgers(directory: Path) -> str:
            if store == "sqlite":
                return str(directory / "ledger.db")
            server: Postgres = request.getfixturevalue("postgres")
            return databases.enter_context(server.database())

        running = Program(tmp_path_factory.mktemp(store), ledgers)
        yield running
        running.close()


@pytest.fixture
def points(program: Program, store: str, request: pytest.FixtureRequest) -> Callable[[str, int], list[Point]]:
    """Return what gives the points of a part: all of them, or a sample."""
    is_all = request.config.getoption("--kills") == "all"

    def of(how: str, part: int) -> list[Point]:
        return program.points(is_all=is_all)[:: 1 if is_all else SAMPLE[store, how]][part::PARTS]

    return of


def world_of(facts: Answer) -> list[str]:
    """Return what has happened, without the notes that something was interrupted."""
    return [line for line in facts["world"] if not line.startswith("interrupted")]


def faults_of(answer: Answer, reference: Answer, point: Point) -> list[str]:
    """Return what is wrong after a process was stopped at a point and another has gone on."""
    if "trace" in answer:
        return [answer["trace"]]
    commit, when = point
    durable = reference["lengths"][commit if when == "after" else commit - 1]
    facts = answer["facts"]
    checks = {
        "exactly what was committed is there": answer["kinds"] == reference["kinds"][:durable],
        "nothing of it has changed": answer["is_kept"],
        "every receipt is verified": facts["checked"] == facts["receipts"],
        "no run is open": "open" not in facts["runs"],
        "every handoff is as it was without the kill": facts["handoffs"] == reference["facts"]["handoffs"],
        "nothing is in doubt": facts["in_doubt"] == [],
        "everything has happened once": world_of(facts) == sorted(EFFECTS),
    }
    return [f"{commit} {when}: not so: {check}: {facts}" for check, holds in checks.items() if not holds]


@pytest.mark.parity("append-is-all-or-none")
def test_the_story_writes_every_kind_of_receipt(program: Program) -> None:
    """So a kill at each of its commits is a kill at each receipt of each act. A gap has no commit of its own."""
    closed = tomllib.loads((ROOT / "closed.toml").read_text(encoding="utf-8"))["kinds"]["names"]
    reference = program.reference

    assert "trace" not in reference, reference["trace"]
    assert set(closed) - {"key.enrolled.relay", "run.recorded.gap"} == set(reference["kinds"])
    assert sorted(EFFECTS) == world_of(reference["facts"])
    assert reference["facts"]["checked"] == reference["facts"]["receipts"]
    assert 55 <= len(reference["lengths"])


@pytest.mark.slow
@pytest.mark.parity(
    "append-is-durable-on-return",
    "relay-resumes-a-killed-root",
    "retry-of-a-killed-attempt",
    "finished-calls-are-replayed",
    "in-doubt-calls-are-listed",
    "sim-retried-then-killed-is-still-open-work",
    "sim-no-transaction-stays-open",
)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_any_commit_loses_and_doubles_nothing(
    program: Program, points: Callable[[str, int], list[Point]], part: int
) -> None:
    """SIGKILL before and after each commit: what was acknowledged is there, and the program goes on to the same end."""
    faults = [
        fault
        for point in points("kill", part)
        for fault in faults_of(program.do("kill", *point), program.reference, point)
    ]

    assert [] == faults


def heard_of(answer: Answer) -> list[str]:
    """Return what a process did that woke up after another had gone on, and that it must not."""
    if "trace" in answer:
        return []
    refusals = {"ledger.fenced", "ledger.stream_closed", "lifecycle.illegal", "nothing"}
    checks = {
        "it is refused": answer["heard"] in refusals,
        "what it writes is evidence": answer["afterwards"] in ([], ["tool.late_result"]),
        "it makes the call at most that it had begun": len(answer["world_afterwards"]) - len(answer["facts"]["world"])
        <= 1,
    }
    said = {name: answer[name] for name in ("heard", "afterwards", "world_afterwards")}
    return [f"not so: {check}: {said}" for check, holds in checks.items() if not holds]


@pytest.mark.slow
@pytest.mark.parity(
    "late-result-is-evidence",
    "newer-epoch-is-not-adopted",
    "sim-fenced-run-makes-no-call",
    "sim-fenced-run-hears-fenced",
    "fence-names-the-exact-head",
)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_process_that_wakes_up_after_another_went_on_changes_nothing(
    program: Program, points: Callable[[str, int], list[Point]], part: int
) -> None:
    """SIGSTOP at a commit, another goes on to the end, SIGCONT: it can request, deliver and withdraw nothing."""
    faults = []
    for point in points("freeze", part):
        answer = program.do("freeze", *point)
        faults += faults_of(answer, program.reference, point)
        faults += [f"{point}: {fault}" for fault in heard_of(answer)]

    assert [] == faults
