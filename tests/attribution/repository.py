"""Writing a past into a git repository, and counting what was found out about it."""

import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.file_history import read_history
from batonpass.attribution.lines.attribution import Attribution, attribute
from tests.attribution.generator import File, Past, reachable
from tests.attribution.lines import HUMAN, Line

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(root: Path, *arguments: str, given: bytes = b"", more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run git in a repository of a test."""
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        input=given,
        env={**ENVIRONMENT, **more},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def write_repository(past: Past, root: Path) -> Repository:
    """Make the repository that this past leaves behind, with its work tree."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    stream: list[bytes] = []
    numbers = {one: number for number, one in enumerate(reachable(past.tips["main"]), 1)}
    for one, number in numbers.items():
        person = f"{one.author} <{one.author}@example.org> {int(one.at.timestamp())} +0000"
        message = "".join(["a commit\n\n", *(f"Batonpass-Run: {run}\n" for run in one.runs)])
        head = [f"commit refs/heads/main\nmark :{number}\nauthor {person}\ncommitter {person}\n", _data(message)]
        head += [f"{word} :{numbers[parent]}\n" for word, parent in zip(("from", "merge"), one.parents, strict=False)]
        stream += [part.encode() for part in (*head, "deleteall\n")]
        for file in one.files.values():
            stream += [f"M 100644 inline {file.path}\ndata {len(file.data)}\n".encode(), file.data, b"\n"]
    git(root, "fast-import", "--quiet", given=b"".join(stream))
    git(root, "reset", "--quiet", "--hard")
    for path in root.glob("src/*"):
        path.unlink()
    for file in past.tree.values():
        (root / file.path).write_bytes(file.data)
    return Repository(root, ENVIRONMENT)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


@dataclass(slots=True)
class Score:
    """How many lines were found to be whose."""

    agents: int = 0  # lines that an agent wrote, by calls of which something was recorded
    right: int = 0
    candidates: int = 0  # no answer, and the right run is among those that may have
    unexplained: int = 0
    hidden: int = 0  # lines that an agent wrote, by calls of which nothing was recorded
    wrong: int = 0  # another run's, or a human's line given to an agent; or only others are said to come into question
    humans: int = 0
    suspected: int = 0  # lines of a human that an agent is said to have written perhaps

    @property
    def rate(self) -> float:
        """Return the share of the agents' lines that were found."""
        return self.right / self.agents

    @property
    def reach(self) -> float:
        """Return the share of the agents' lines that were found, or may be whose they are among others."""
        return (self.right + self.candidates) / self.agents

    def __str__(self) -> str:
        return (
            f"{self.rate:.2%} of {self.agents} right, {self.reach:.2%} right or among the candidates, "
            f"{self.unexplained} unexplained, {self.wrong} wrong; of {self.humans} of people {self.suspected} in doubt"
        )

    def __add__(self, other: "Score") -> "Score":
        return Score(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def add(self, found: Iterable[Attribution], truth: Iterable[Line], hidden: Collection[str]) -> None:
        """Compare the answers for one file with what happened."""
        for answer, line in zip(found, truth, strict=True):
            assert answer.text == line.text
            is_shut = bool(answer.candidates) and not answer.or_nobody and answer.run is None
            others = line.run not in {candidate.run for candidate in answer.candidates}
            self.wrong += (
                answer.run not in {None, line.run} or answer.call not in {None, line.call} or (is_shut and others)
            )
            if line.run == HUMAN:
                self.humans += 1
                self.suspected += bool(answer.candidates)
            elif line.call in hidden:
                self.hidden += 1
            else:
                self._count(answer, line)

    def _count(self, answer: Attribution, line: Line) -> None:
        self.agents += 1
        if answer.run == line.run:
            self.right += 1
        elif line.run in {candidate.run for candidate in answer.candidates}:
            self.candidates += 1
        else:
            self.unexplained += answer.run is None


def score_files(
    files: Iterable[File],
    repository: Repository,
    changes: list[FileChange],
    *,
    hidden: Collection[str] = (),
) -> Score:
    """Attribute files and compare; calls that are hidden left no record."""
    result = Score()
    for file in files:
        history = read_history(repository, file.path, file.data, changes)
        found = attribute(file.path, file.data, changes, history)
        result.add(found, file.lines, hidden)
    return result


def score(
    past: Past, repository: Repository | None, changes: list[FileChange], *, hidden: Collection[str] = ()
) -> Score:
    """Attribute all files of the work tree, and compare; calls that are hidden left no record."""
    result = Score()
    for file in past.tree.values():
        result.add(attribute_file(file, repository, changes), file.lines, hidden)
    return result


def attribute_file(file: File, repository: Repository | None, changes: list[FileChange]) -> tuple[Attribution, ...]:
    """Return who wrote each line of a file of the work tree."""
    history = read_history(repository, file.path, file.data, changes) if repository else None
    return attribute(file.path, file.data, changes, history)
