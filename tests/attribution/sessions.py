"""Sessions that never happened: agents under hooks, a person who saves files, and git. It knows who wrote what.

Unlike `generator`, which decides what is recorded, this plays each story through the recorder: looks at a real work
tree before and after each call are all that it has. The truth is kept line by line, and not found by a diff.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from batonpass.accounts.blame.blame_values import BlamedLine as Told
from batonpass.accounts.blame.blame_values import HowKnown
from tests.attribution.editing import edit
from tests.attribution.hooked import Hooked, hooked, nothing
from tests.attribution.lines import HUMAN, Line, Writer, a_function, a_strong_text, merge, slid_down, texts_of

FILES = ("src/one.py", "src/two.py", "src/three.py")
AGENTS = (None, "helper1", "helper2")  # the main conversation, and sub-agents
TESTS = ("pytest -q", "python -m pytest src/one.py src/two.py", "make check", "cat src/*.py | wc -l")

Lines = tuple[Line, ...]


@dataclass(slots=True)
class Verdicts:
    """How many lines were told how."""

    right: int = 0
    candidates: int = 0  # several may have, whoever wrote it among them
    missed: int = 0  # nobody is named, or only others that may have
    wrong: int = 0

    @property
    def share(self) -> float:
        """Return which part of the lines was told rightly, or with the right one among the candidates."""
        return (self.right + self.candidates) / max(self.right + self.candidates + self.missed + self.wrong, 1)

    def __add__(self, other: "Verdicts") -> "Verdicts":
        return Verdicts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(slots=True)
class Play:
    """One story, as it goes."""

    rng: random.Random
    shop: Hooked
    truth: dict[str, Lines] = field(default_factory=dict)
    committed: dict[str, Lines] = field(default_factory=dict)
    stashed: dict[str, Lines] | None = None
    branches: int = 0
    happened: dict[str, int] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=Verdicts)

    def begin(self) -> None:
        """Start with files that a person committed."""
        for path in FILES:
            texts = [text for _ in range(6) for text in a_function(self.rng)]
            self._become(path, tuple(Writer(HUMAN).lines(texts)))
        self.commit(by="ana")

    def step(self) -> None:
        """Let one thing happen."""
        doings = {
            self.person_saves: 3,
            self.edits: 5,
            self.edits_while_person_saves: 2,
            self.writes_by_name: 5,
            self.writes_otherwise: 2,
            self.tests_while_person_saves: 4,
            self.works_in_parallel: 3,
            self.agent_commits: 2,
            self.commit: 1,
            self.merges: 2,
            self.stashes: 1,
            self.restores: 1,
        }
        doing = self.rng.choices(list(doings), list(doings.values()))[0]
        self.happened[doing.__name__] = self.happened.get(doing.__name__, 0) + 1
        doing()

    def person_saves(self, path: str | None = None) -> None:
        """Let the person edit a file, between calls or during one."""
        path = path or self.rng.choice(FILES)
        self._become(path, self._edited(path, Writer(HUMAN)))

    def edits(self, path: str | None = None, agent: str | None = None) -> None:
        """Let an agent use its editor."""
        path = path or self.rng.choice(FILES)
        call = self._edit_begins(path, agent or self.rng.choice(AGENTS))
        self._edit_ends(path, call)

    def edits_while_person_saves(self) -> None:
        """Let the person save the very file right before the editor reads it, or another one."""
        path = self.rng.choice(FILES)
        call = self._edit_begins(path, self.rng.choice(AGENTS))
        self.person_saves(self.rng.choice(FILES))
        self._edit_ends(path, call)

    def writes_by_name(self, path: str | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """Let an agent write a file by a command that names it, while the person may save another."""
        path = path or self.rng.choice(FILES)
        agent = self.rng.choice(AGENTS)
        call = f"c{self.shop.count + 1}"
        new, command = self.rng.choice((self._by_document, self._by_sed, self._by_echo))(path, Writer("agent", call))
        others = [other for other in FILES if other != path]
        during = meanwhile or (
            (lambda: self.person_saves(self.rng.choice(others))) if self.rng.random() < 0.3 else nothing
        )
        assert call == self.shop.bash(command, agent=agent, meanwhile=during)
        self._is(path, new)

    def writes_otherwise(self) -> None:
        """Let a program of the agent write a file that no word of its command names as written."""
        path = self.rng.choice(FILES)
        command = self.rng.choice(("python tools/gen.py", f"python tools/gen.py {path}", "make generate"))
        call = self.shop.begin("Bash", self.rng.choice(AGENTS), command=command)
        self._become(path, self._edited(path, Writer("agent", call)))
        self.shop.end(call)

    def tests_while_person_saves(self) -> None:
        """Let the person save files while tests run."""
        call = self.shop.begin("Bash", self.rng.choice(AGENTS), command=self.rng.choice(TESTS))
        for _ in range(self.rng.randrange(1, 3)):
            self.person_saves()
        self.shop.end(call)

    def works_in_parallel(self) -> None:
        """Let sub-agents work at the same time: one tests, one edits, one runs a command, and the person saves."""
        first, *others = self.rng.sample(FILES, 3)
        tests = self.shop.begin("Bash", "helper1", command=self.rng.choice(TESTS))
        call = self._edit_begins(first, "helper2")
        self.writes_by_name(others[0], meanwhile=lambda: self.person_saves(others[1]))
        if self.rng.random() < 0.5:
            self.shop.end(tests)
            self._edit_ends(first, call)
        else:
            self._edit_ends(first, call)
            self.person_saves(self.rng.choice(others))
            self.shop.end(tests)

    def commit(self, by: str = "ana") -> None:
        """Let the person commit everything."""
        self.shop.run("git add --all && git commit --quiet --allow-empty --message=more", by=by)
        self.committed = dict(self.truth)

    def agent_commits(self) -> None:
        """Let an agent write a file and commit it, in one command or in two."""
        path = self.rng.choice(FILES)
        call = f"c{self.shop.count + 1}"
        new, command = self.rng.choice((self._by_document, self._by_sed, self._by_echo))(path, Writer("agent", call))
        committing = "git add --all && git commit --quiet --message=work"
        if self.rng.random() < 0.5:
            self.shop.bash(f"{command}\n{committing}")
            self._is(path, new)
        else:
            self.shop.bash(command)
            self._is(path, new)
            self.shop.bash(committing)
        self.committed = dict(self.truth)

    def merges(self) -> None:
        """Let the person commit on a branch, and an agent merge or rebase onto it."""
        self.commit()
        base, self.branches = dict(self.committed), self.branches + 1
        branch = f"branch{self.branches}"
        self.shop.run(f"git switch --quiet --create {branch}", by="ben")
        for _ in range(2):
            self.person_saves()
        self.commit(by="ben")
        theirs = dict(self.committed)
        self.shop.run("git switch --quiet main", by="ben")
        self.truth = dict(base)
        self.committed = dict(base)
        self.agent_commits()
        ours = dict(self.truth)
        merged = {path: merge(base[path], ours[path], theirs[path]) for path in FILES}
        command = self.rng.choice((f"git merge --quiet --message=merged {branch}", f"git rebase --quiet {branch}"))
        head = self.shop.run("git rev-parse HEAD", by="ana").strip()
        self.shop.bash(f"{command} || (git rebase --abort; git merge --abort) 2> /dev/null; true")
        if all(lines is not None and texts_of(lines) == self.shop.lines(path) for path, lines in merged.items()):
            self.truth = {path: tuple(lines or ()) for path, lines in merged.items()}
        else:
            # They contradict each other, or git tells it otherwise: the person takes it back.
            self.shop.run(f"git reset --quiet --hard {head}", by="ana")
            self.truth = ours
        self.committed = dict(self.truth)

    def stashes(self) -> None:
        """Let an agent put away all that is not committed, do something, and bring it back."""
        if self.truth == self.committed:
            self.person_saves()
        kept = dict(self.truth)
        self.shop.bash("git stash --quiet")
        self.truth = dict(self.committed)
        if self.rng.random() < 0.5:
            self.shop.bash("pytest -q", fails=True)
        self.shop.bash("git stash pop --quiet")
        self.truth = kept

    def restores(self) -> None:
        """Let an agent take back what is not committed of one file."""
        path = self.rng.choice(FILES)
        self.shop.bash(f"git checkout --quiet -- {path}")
        self.truth[path] = self.committed[path]

    def judge(self) -> Verdicts:
        """Return how the lines that are there now are told."""
        found, keys = Verdicts(), self.shop.keys()
        for path, lines in self.truth.items():
            assert texts_of(lines) == self.shop.lines(path)
            for told, line in zip(self.shop.blame(path).lines, lines, strict=True):
                verdict = _verdict(told, [keys[call] for call in told.calls], line)
                setattr(found, verdict, getattr(found, verdict) + 1)
        return found

    def _edited(self, path: str, writer: Writer) -> Lines:
        before = self.truth[path]
        return tuple(slid_down(before, edit(self.rng, writer, before, told=True)))

    def _become(self, path: str, lines: Lines) -> None:
        self.shop.save(path, *texts_of(lines))
        self._is(path, lines)

    def _is(self, path: str, lines: Lines) -> None:
        self.truth[path] = lines
        assert texts_of(lines) == self.shop.lines(path)

    def _edit_begins(self, path: str, agent: str | None) -> str:
        return self.shop.begin("Edit", agent, file_path=str(self.shop.root / path))

    def _edit_ends(self, path: str, call: str) -> None:
        """Let an editor write what it was told: into the file as it is when it reads it."""
        before = self.truth[path]
        self._become(path, self._edited(path, Writer("agent", call)))
        old, new = ("".join(f"{text}\n" for text in texts_of(lines)) for lines in (before, self.truth[path]))
        marks = [*(f"-{line}" for line in texts_of(before)), *(f"+{line}" for line in texts_of(self.truth[path]))]
        hunk = {"oldStart": 1, "newStart": 1, "lines": marks}
        told = {"filePath": str(self.shop.root / path), "originalFile": old, "structuredPatch": [hunk]}
        self.shop.end(call, told if old != new else {})

    def _by_document(self, path: str, writer: Writer) -> tuple[Lines, str]:
        new = self._edited(path, writer)
        return new, "\n".join((f"cat > {path} <<'EOF'", *texts_of(new), "EOF"))

    def _by_sed(self, path: str, writer: Writer) -> tuple[Lines, str]:
        lines = list(self.truth[path])
        at = self.rng.randrange(len(lines))
        lines[at] = writer.line(a_strong_text(self.rng))
        return tuple(lines), f"cd src && sed -i '{at + 1}s/.*/{lines[at].text}/' {Path(path).name}"

    def _by_echo(self, path: str, writer: Writer) -> tuple[Lines, str]:
        line = writer.line(a_strong_text(self.rng))
        return (*self.truth[path], line), f"echo '{line.text}' >> {path}"


def _verdict(told: Told, keys: Sequence[str], line: Line) -> str:
    is_human = line.run == HUMAN
    match told.known:
        case HowKnown.UNEXPLAINED:
            return "right" if is_human else "missed"
        case HowKnown.CANDIDATES:
            if told.or_nobody if is_human else line.call in keys:
                return "candidates"
            return "missed" if told.or_nobody else "wrong"
        case _:
            if is_human or line.call not in keys:
                return "wrong"
            return "right" if len(keys) == 1 else "candidates"


def play(seed: int, folder: Path, *, steps: int = 25) -> Play:
    """Play one story to its end, and return it with what is recorded."""
    rng = random.Random(seed)
    with hooked(folder) as shop:
        story = Play(rng, shop)
        story.begin()
        for _ in range(steps):
            story.step()
        story.verdicts = story.judge()
    return story


def total(stories: Sequence[Play]) -> Verdicts:
    """Return the verdicts of several stories together."""
    return sum((story.verdicts for story in stories), Verdicts())
