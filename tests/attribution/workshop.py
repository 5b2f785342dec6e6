"""A repository in which agents and people use git itself: merge, rebase, squash, fix up, amend, pick, revert, stash.

It knows whose each line is, all the time. What git makes of the files is compared with what is known: if they are not
the same text, git has resolved something in its own way, and it is undone as a person would undo it.
"""

import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import structs

from batonpass.attribution.changes.change import Certainty, FileChange, digest_of
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.model.base.ids import new_call_id
from tests.attribution.editing import edit
from tests.attribution.generator import File, with_context
from tests.attribution.lines import HUMAN, Line, Writer, a_function, merge, reindented, slid_down, texts_of
from tests.attribution.repository import ENVIRONMENT

BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
FILES = 3
SHORT = ("x = 100", "k = 5", "i += 1", "}", "", "", "n = 0", "pass", "ok = True", "y = 3", "return x", "    z = 7")

Tree = dict[int, File]


class UndoneError(Exception):
    """Git did something else, or nothing."""


@dataclass(slots=True)
class Workshop:
    """What happens, step by step, in a real repository."""

    root: Path
    rng: random.Random
    now: datetime = BEGAN
    branch: str = "main"
    tree: Tree = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)  # by commit
    changes: list[FileChange] = field(default_factory=list)
    befores: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # calls of a shell: no transcript shows what they did
    happened: dict[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    watch: Callable[[FileChange, bytes, bytes], None] = lambda *_: None  # told of each edit that a transcript shows
    _busy: dict[str, None] = field(default_factory=dict)  # runs at work since the last commit
    _topics: int = 0

    def begin(self) -> None:
        """Start with files that a person wrote."""
        self.root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        for number in range(FILES):
            texts = [text for _ in range(5) for text in a_function(self.rng)]
            self.tree[number] = File(f"module_{number}.py", tuple(Writer(HUMAN).lines(texts)))
        self.write()
        self.commit("first")

    def git(self, *arguments: str, fails: bool = False, more: Mapping[str, str] | None = None) -> str:
        """Run git as a person or an agent does, at this time."""
        who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
        who |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_EDITOR": "true"}
        at = {"GIT_AUTHOR_DATE": self.now.isoformat(), "GIT_COMMITTER_DATE": self.now.isoformat()}
        command = ["git", "-C", str(self.root), "-c", "core.abbrev=40", *arguments]
        given = {**self.environment, **who, **at, **(more or {})}
        done = subprocess.run(command, env=given, capture_output=True, check=False)
        if done.returncode and not fails:
            raise UndoneError(done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode().strip()

    def tick(self) -> None:
        """Let some time go by."""
        self.wait(self.rng.randrange(3, 200))

    def wait(self, seconds: int) -> None:
        """Let so much time go by."""
        self.now += timedelta(seconds=seconds)

    def run(self) -> str:
        """Return a run of an agent."""
        return f"run_{self.rng.choice(('editor', 'tester', 'fixer'))}_{len(self.trees) // 8}"

    def head(self) -> str:
        """Return the commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    def write(self) -> None:
        """Put the files into the work tree."""
        for path in self.root.glob("*.py"):
            path.unlink()
        for file in self.tree.values():
            (self.root / file.path).write_bytes(file.data)

    def commit(self, message: str, *options: str) -> None:
        """Commit everything, if there is anything to commit; the message says which agents were at work."""
        self.git("add", "--all")
        if self.git("status", "--porcelain") or "--amend" in options:
            trailers = (f"--trailer=Agent: {run}" for run in self._busy)
            self.git("commit", "--quiet", f"--message={message}", *trailers, *options)
            self._busy.clear()
        self.trees[self.head()] = dict(self.tree)

    def human_edit(self) -> None:
        """Let a person edit a file; nobody records it."""
        self.tick()
        number = self.rng.choice(list(self.tree))
        file = self.tree[number]
        self.tree[number] = replace(file, lines=tuple(self._edited(Writer(HUMAN), file.lines, copies=True)))
        self.write()

    def agent_edit(self, run: str) -> None:
        """Let an agent edit a file, while hooks record it."""
        self.tick()
        number = self.rng.choice(list(self.tree))
        writer = Writer(run, new_call_id(self.now))
        lines = self._edited(writer, self.tree[number].lines, copies=False)
        before = dict(self.tree)
        self.tree[number] = replace(self.tree[number], lines=tuple(lines))
        self.write()
        if self.rng.random() < 0.15:
            self.hidden.add(writer.call)
        self._record(writer, before)

    def _edited(self, writer: Writer, lines: Sequence[Line], *, copies: bool) -> list[Line]:
        chance = self.rng.random()
        if chance < 0.05:
            start = self.rng.randrange(len(lines))
            return [*lines[:start], *map(reindented, lines[start : start + 6]), *lines[start + 6 :]]
        if chance < 0.45:
            at = self.rng.randrange(len(lines) + 1)
            texts = [self.rng.choice(SHORT) for _ in range(self.rng.randrange(1, 3))]
            return slid_down(lines, [*lines[:at], *writer.lines(texts), *lines[at:]])
        return slid_down(lines, edit(self.rng, writer, lines, copies=copies, told=not copies))

    def does(self, run: str | None, act: Callable[[], Tree], undo: Callable[[], None]) -> None:
        """Let somebody run git, and record it if an agent does; undo it if it is not what it should be."""
        self.tick()
        started, before = self.now, dict(self.tree)
        try:
            self.tree = act()
            self._compare()
        except UndoneError:
            undo()
            self.tree = before
            self._compare()
            raise
        if not self.git("status", "--porcelain"):
            self.trees[self.head()] = dict(self.tree)
        if run is not None:
            writer = Writer(run, new_call_id(started))
            self.wait(self.rng.randrange(1, 9))
            self.hidden.add(writer.call)
            self._record(writer, before, is_brought=True)

    def _compare(self) -> None:
        found = {path.name: path.read_bytes() for path in self.root.glob("*.py")}
        if found != {file.path: file.data for file in self.tree.values()}:
            raise UndoneError("git resolved it in another way")

    def _record(self, writer: Writer, before: Tree, *, is_brought: bool = False) -> None:
        kept = {file.data for tree in self.trees.values() for file in tree.values()}
        for number, new in self.tree.items():
            old = before[number]
            if old.data == new.data and old.path == new.path:
                continue
            self.befores[f"{writer.call} {new.path}"] = tuple(texts_of(old.lines))
            self.changes.append(
                FileChange(
                    call=writer.call,
                    run=writer.run,
                    at=self.now,
                    path=new.path,
                    before=digest_of(old.data),
                    after=digest_of(new.data),
                    hunks=hunks_between(texts_of(old.lines), texts_of(new.lines)),
                    renamed_from=old.path if old.path != new.path else None,
                    certainty=_certainty(is_brought=is_brought, is_kept=new.data in kept),
                )
            )
            if not is_brought:
                self._busy[writer.run] = None
            if writer.call not in self.hidden:
                self.watch(self.changes[-1], old.data, new.data)

    def transcript(self) -> list[FileChange]:
        """Return what a transcript shows: hunks with context, no digests, nothing of what a shell did."""
        return [
            structs.replace(
                change,
                before=None,
                after=None,
                hunks=with_context(change.hunks or (), self.befores[f"{change.call} {change.path}"]),
            )
            for change in self.changes
            if change.call not in self.hidden
        ]

    def put_together(self, base: Tree, onto: Tree, tip: Tree) -> Tree:
        """Return one tree with what another made of a third."""
        result: Tree = {}
        for number, ours in onto.items():
            old, other = base[number], tip[number]
            lines = merge(old.lines, ours.lines, other.lines)
            if lines is None:
                raise UndoneError("a conflict")
            result[number] = File(other.path if ours.path == old.path else ours.path, tuple(lines))
        return result

    def commits(self, span: str) -> list[str]:
        """Return commits, the oldest first; none if one of them is a merge."""
        if self.git("rev-list", "--merges", span):
            return []
        return self.git("rev-list", "--reverse", span).split()

    def parent(self, commit: str) -> str:
        """Return what a commit was made on."""
        return self.git("rev-parse", f"{commit}^")

    def start_over(self) -> None:
        """Throw away what is not committed, as a person does whom git has left in the middle of something."""
        self.git("reset", "--quiet", "--hard")
        self.branch = self.git("symbolic-ref", "--short", "HEAD")
        self.tree = dict(self.trees[self.head()])
        self._compare()

    def topic(self) -> str | None:
        """Return a branch that is not the main one."""
        names = self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        topics = [name for name in names if name != "main"]
        return self.rng.choice(topics) if topics else None

    def checkout(self, branch: str) -> None:
        """Check out a branch; everything is committed."""
        self.git("checkout", "--quiet", branch)
        self.branch = branch
        self.tree = dict(self.trees[self.head()])
        self._compare()


def _certainty(*, is_brought: bool, is_kept: bool) -> Certainty:
    """Return how a recorder tells a change: what git brings is known by what a commit has."""
    if not is_brought:
        return Certainty.CERTAIN
    return Certainty.BROUGHT if is_kept else Certainty.CANDIDATE


def work(shop: Workshop) -> None:
    """Let an agent edit, a person now and then, and one of them commit."""
    run = shop.run()
    for _ in range(shop.rng.randrange(1, 4)):
        shop.agent_edit(run)
        if shop.rng.random() < 0.2:
            shop.human_edit()
    shop.tick()
    shop.commit(f"work {shop.rng.randrange(1000)}")


def mend(shop: Workshop) -> None:
    """Let a person edit and commit."""
    shop.human_edit()
    shop.tick()
    shop.commit("mended")


def shell(shop: Workshop) -> None:
    """Let an agent edit and commit in one command, which takes its time."""
    shop.tick()
    number = shop.rng.choice(list(shop.tree))
    before, writer = dict(shop.tree), Writer(shop.run(), new_call_id(shop.now))
    lines = slid_down(shop.tree[number].lines, edit(shop.rng, writer, shop.tree[number].lines, told=True))
    shop.tree[number] = replace(shop.tree[number], lines=tuple(lines))
    shop.write()
    shop.wait(2)
    shop.commit("by the shell")
    shop.wait(shop.rng.randrange(20))
    shop.hidden.add(writer.call)
    shop._record(writer, before)


def amend(shop: Workshop, run: str | None) -> None:
    """Change the last commit."""
    if shop.git("rev-list", "--count", "HEAD") != "1":
        if run is None:
            shop.human_edit()
        else:
            shop.agent_edit(run)
        shop.tick()
        shop.commit("amended", "--amend")


def rename(shop: Workshop, run: str | None) -> None:
    """Rename a file."""
    number = shop.rng.choice(list(shop.tree))
    path = f"renamed_{number}_{len(shop.trees)}.py"

    def act() -> Tree:
        shop.git("mv", shop.tree[number].path, path)
        return {**shop.tree, number: replace(shop.tree[number], path=path)}

    if shop.branch == "main" and shop.topic() is None:
        shop.does(run, act, lambda: None)
        shop.commit("renamed")


def branch(shop: Workshop, run: str | None) -> None:
    """Begin a branch, and work on both sides."""
    del run
    shop._topics += 1
    shop.git("checkout", "--quiet", "-b", f"topic_{shop._topics}")
    shop.branch = f"topic_{shop._topics}"
    for _ in range(shop.rng.randrange(1, 4)):
        shop.rng.choice((work, work, mend, shell))(shop)
    if shop.rng.random() < 0.7:
        shop.checkout("main")
        shop.rng.choice((work, mend))(shop)


def switch(shop: Workshop, run: str | None) -> None:
    """Check out another branch."""
    other = shop.topic() if shop.branch == "main" else "main"
    if other is not None:

        def act() -> Tree:
            shop.git("checkout", "--quiet", other)
            return dict(shop.trees[shop.head()])

        shop.does(run, act, lambda: None)
        shop.branch = other


def join(shop: Workshop, run: str | None) -> None:
    """Merge a branch into the main one, or squash it."""
    name = shop.topic()
    if name is None:
        return
    shop.checkout("main")
    ours, theirs = shop.head(), shop.git("rev-parse", name)
    base = shop.git("merge-base", ours, theirs)
    kind = shop.rng.choice(("merge", "squash", "squash said"))

    def act() -> Tree:
        tree = shop.put_together(shop.trees[base], shop.tree, shop.trees[theirs])
        if kind == "merge":
            shop.git("merge", "--quiet", "--no-edit", name)
        else:
            shop.git("merge", "--quiet", "--squash", name)
            shop.git("commit", "--quiet", *(["--no-edit"] if kind == "squash said" else ["--message=all of it"]))
        return tree

    def undo() -> None:
        shop.git("reset", "--quiet", "--hard", ours)

    shop.does(run, act, undo)
    if shop.rng.random() < 0.6:
        shop.git("branch", "--quiet", "-D", name)


def rebase(shop: Workshop, run: str | None) -> None:
    """Rebase a branch; most often the main one is moved there afterwards."""
    name = shop.topic()
    if name is None or not (mine := shop.commits(f"main..{name}")):
        return
    shop.checkout(name)
    tip, main = shop.head(), shop.git("rev-parse", "main")

    def act() -> Tree:
        states = [dict(shop.trees[main])]
        for one in mine:
            states.append(shop.put_together(shop.trees[shop.parent(one)], states[-1], shop.trees[one]))
        shop.git("rebase", "--quiet", "main")
        new = shop.commits("main..HEAD")
        if len(new) != len(mine):
            raise UndoneError("a commit is gone")
        shop.trees |= dict(zip(new, states[1:], strict=True))
        return states[-1]

    def undo() -> None:
        shop.git("rebase", "--abort", fails=True)
        shop.git("reset", "--quiet", "--hard", tip)

    shop.does(run, act, undo)
    if shop.rng.random() < 0.7:
        shop.checkout("main")
        shop.git("merge", "--quiet", "--ff-only", name)
        shop.git("branch", "--quiet", "-D", name)
        shop.checkout("main")


def fix_up(shop: Workshop, run: str | None) -> None:
    """Change an earlier commit of a branch, by a commit that is put into it."""
    name = shop.topic()
    if name is None or not (mine := shop.commits(f"main..{name}")):
        return
    shop.checkout(name)
    base = shop.parent(mine[0])
    (shop.human_edit if run is None else lambda: shop.agent_edit(run))()
    shop.tick()
    shop.commit(f"fixup! {shop.git('show', '--no-patch', '--format=%s', mine[0])}")
    fixing = shop.head()
    if fixing == mine[-1]:
        return

    def act() -> Tree:
        state = shop.put_together(shop.trees[mine[-1]], shop.trees[mine[0]], shop.trees[fixing])
        states = [state]
        for one in mine[1:]:
            states.append(shop.put_together(shop.trees[shop.parent(one)], states[-1], shop.trees[one]))
        shop.git("rebase", "--quiet", "--interactive", "--autosquash", base, more={"GIT_SEQUENCE_EDITOR": "true"})
        new = shop.commits(f"{base}..HEAD")
        if len(new) != len(mine):
            raise UndoneError("a commit is gone")
        shop.trees |= dict(zip(new, states, strict=True))
        return states[-1]

    def undo() -> None:
        shop.git("rebase", "--abort", fails=True)
        shop.git("reset", "--quiet", "--hard", fixing)

    shop.does(run, act, undo)


def pick(shop: Workshop, run: str | None) -> None:
    """Pick a commit of a branch."""
    name = shop.topic()
    if name is None or not (mine := shop.commits(f"main..{name}")):
        return
    shop.checkout("main")
    one, ours = shop.rng.choice(mine), shop.head()
    options = ["-x"] if shop.rng.random() < 0.5 else []

    def act() -> Tree:
        tree = shop.put_together(shop.trees[shop.parent(one)], shop.tree, shop.trees[one])
        shop.git("cherry-pick", *options, one)
        return tree

    def undo() -> None:
        shop.git("cherry-pick", "--abort", fails=True)
        shop.git("reset", "--quiet", "--hard", ours)

    shop.does(run, act, undo)


def revert(shop: Workshop, run: str | None) -> None:
    """Take back one of the last commits."""
    ours = shop.head()
    mine = shop.commits("HEAD~3..HEAD") if int(shop.git("rev-list", "--count", "--first-parent", "HEAD")) > 4 else []
    if not mine:
        return
    one = shop.rng.choice(mine)

    def act() -> Tree:
        tree = shop.put_together(shop.trees[one], shop.tree, shop.trees[shop.parent(one)])
        shop.git("revert", "--no-edit", one)
        return tree

    def undo() -> None:
        shop.git("revert", "--abort", fails=True)
        shop.git("reset", "--quiet", "--hard", ours)

    shop.does(run, act, undo)


def stash(shop: Workshop, run: str | None) -> None:
    """Put work away, let something else be committed or checked out, and take the work out again."""
    for _ in range(shop.rng.randrange(1, 3)):
        shop.agent_edit(shop.run())
    if shop.rng.random() < 0.3:
        shop.human_edit()
    base, put_away = shop.head(), dict(shop.tree)
    if put_away == shop.trees[base]:
        return

    def put() -> Tree:
        shop.git("stash", "--quiet")
        return dict(shop.trees[base])

    shop.does(run, put, lambda: None)
    if shop.rng.random() < 0.5 and (other := shop.topic()) is not None:
        shop.checkout(other)
    else:
        shop.rng.choice((work, mend))(shop)
    ours = shop.head()

    def act() -> Tree:
        tree = shop.put_together(shop.trees[base], shop.tree, put_away)
        shop.git("stash", "pop", "--quiet")
        shop.git("reset", "--quiet")
        return tree

    def undo() -> None:
        shop.git("reset", "--quiet", "--hard", ours)

    shop.does(run, act, undo)
    if shop.rng.random() < 0.7:
        shop.tick()
        shop.commit("popped")


DOINGS: dict[str, tuple[float, Callable[[Workshop, str | None], None]]] = {
    "work": (4, lambda shop, _: work(shop)),
    "mend": (1.5, lambda shop, _: mend(shop)),
    "shell": (1, lambda shop, _: shell(shop)),
    "amend": (1.5, amend),
    "rename": (0.5, rename),
    "branch": (3, branch),
    "switch": (1, switch),
    "join": (2, join),
    "rebase": (2, rebase),
    "fix up": (1.5, fix_up),
    "pick": (1.5, pick),
    "revert": (1, revert),
    "stash": (1.5, stash),
}


def visit(seed: int, root: Path, steps: int = 25) -> Workshop:
    """Return a workshop after so many things were done in it, with work that is not committed."""
    shop = Workshop(root, random.Random(seed))
    shop.begin()
    live_in(shop, steps)
    return shop


def live_in(shop: Workshop, steps: int) -> None:
    """Do so many things in a workshop, and leave work there that is not committed."""
    for _ in range(steps):
        name = shop.rng.choices(list(DOINGS), [weight for weight, _ in DOINGS.values()])[0]
        run = shop.run() if shop.rng.random() < 0.5 else None
        try:
            DOINGS[name][1](shop, run)
            shop.happened[name] = shop.happened.get(name, 0) + 1
        except UndoneError:
            shop.happened["undone"] = shop.happened.get("undone", 0) + 1
            shop.start_over()
    if shop.git("status", "--porcelain"):
        shop.commit("left")
    shop.checkout("main")
    shop.agent_edit(shop.run())
    if shop.rng.random() < 0.5:
        shop.human_edit()
