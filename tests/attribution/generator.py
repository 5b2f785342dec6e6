"""A repository with a past: three agents and a human in the same files, and git in between. It knows who wrote what.

What the agents' hooks would have recorded is in `changes`; what a transcript would tell afterwards, in `transcript()`.
All is decided here, line by line, and only then written with `git fast-import`: so the truth is not found by a diff.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from msgspec import structs

from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.changes.line_diff import hunks_between
from tests.attribution.editing import edit
from tests.attribution.lines import HUMAN, Line, Writer, a_function, merge, reindented, slid_down, texts_of

BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
AGENTS = ("editor", "tester", "fixer")
FILES = 6
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class File:
    """A file under the name that it has at one time."""

    path: str
    lines: tuple[Line, ...]

    @property
    def data(self) -> bytes:
        """Return it as it is written."""
        return "".join(f"{line.text}\n" for line in self.lines).encode()


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A commit."""

    parents: tuple["Snapshot", ...]
    files: dict[int, File]
    author: str
    at: datetime
    runs: tuple[str, ...] = ()


@dataclass(slots=True)
class Past:
    """What happens, step by step."""

    rng: random.Random
    now: datetime = BEGAN
    commits: int = 0
    branch: str = "main"
    tips: dict[str, Snapshot] = field(default_factory=dict)
    tree: dict[int, File] = field(default_factory=dict)
    changes: list[FileChange] = field(default_factory=list)
    befores: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by call: the lines it began with
    bash: set[str] = field(default_factory=set)  # calls that no transcript shows the effect of
    writes: set[str] = field(default_factory=set)  # calls that wrote a whole file
    happened: dict[str, int] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)  # runs at work since the last commit
    _calls: int = 0

    def begin(self) -> None:
        """Start with files that a human wrote, before anything was recorded."""
        for number in range(FILES):
            texts = [text for _ in range(6) for text in a_function(self.rng)]
            self.tree[number] = File(f"src/module_{number}.py", tuple(Writer(HUMAN).lines(texts)))
        self.commit(HUMAN)

    def tick(self) -> None:
        """Let some time go by."""
        self.now += timedelta(seconds=self.rng.randrange(5, 300))

    def run(self) -> str:
        """Return an agent's run: a new one every twenty commits."""
        return f"run_{self.rng.choice(AGENTS)}_{self.commits // 20}"

    def commit(self, author: str, *parents: Snapshot) -> None:
        """Commit the work tree, if anything is different in it; every second commit names the runs."""
        self.tick()
        runs = tuple(sorted(self._busy)) if self.rng.random() < 0.5 else ()
        tip = self.tips.get(self.branch)
        before = parents or ((tip,) if tip else ())
        if len(before) == 1 and before[0].files == self.tree:
            return
        self.tips[self.branch] = Snapshot(before, dict(self.tree), author, self.now.replace(microsecond=0), runs)
        self._busy.clear()
        self.commits += 1

    def human_edit(self) -> None:
        """Let the human edit a file; nobody records it."""
        number = self.rng.choice(list(self.tree))
        file = self.tree[number]
        self.tick()
        if self.rng.random() < 0.05:
            start = self.rng.randrange(len(file.lines))
            lines = [*file.lines]
            lines[start : start + 12] = map(reindented, lines[start : start + 12])
        else:
            lines = slid_down(file.lines, edit(self.rng, Writer(HUMAN), file.lines, copies=True))
        self.tree[number] = replace(file, lines=tuple(lines))

    def agent_edit(self, run: str) -> None:
        """Let an agent edit a file, with whichever tool."""
        number = self.rng.choice(list(self.tree))
        file = self.tree[number]
        self.tick()
        writer = self._writer(run)
        tool = self.rng.choices(("edit", "write", "bash", "format"), (6, 3, 1, 0.3))[0]
        if tool == "format":
            start = self.rng.randrange(len(file.lines))
            lines = [*file.lines]
            lines[start : start + 12] = map(reindented, lines[start : start + 12])
        else:
            # What a recorder knows of it is a diff, and diffs agree on where.
            lines = slid_down(file.lines, edit(self.rng, writer, file.lines, told=True))
        self._record(writer, number, replace(file, lines=tuple(lines)))
        if tool != "edit":
            (self.writes if tool == "write" else self.bash).add(writer.call)

    def rename(self, run: str | None) -> None:
        """Rename a file: an agent does, by its shell, or the human."""
        number = self.rng.choice(list(self.tree))
        self.tick()
        file = self.tree[number]
        new = replace(file, path=f"src/renamed_{number}_{self.commits}.py")
        if run is None:
            self.tree[number] = new
            return
        writer = self._writer(run)
        self._record(writer, number, new)
        self.bash.add(writer.call)

    def merged(self, base: Snapshot, theirs: Snapshot) -> dict[int, File] | None:
        """Return the work tree with what theirs made of base."""
        result: dict[int, File] = {}
        for number, ours in self.tree.items():
            old, other = base.files[number], theirs.files[number]
            lines = merge(old.lines, ours.lines, other.lines)
            if lines is None:
                return None
            result[number] = File(other.path if ours.path == old.path else ours.path, tuple(lines))
        return result

    def switch(self, branch: str) -> None:
        """Check out a branch."""
        self.branch = branch
        self.tree = dict(self.tips[branch].files)

    def transcript(self) -> list[FileChange]:
        """Return what a transcript shows: hunks with context, few digests, nothing of what a shell did."""
        return [self._told(change) for change in self.changes if change.call not in self.bash]

    def _told(self, change: FileChange) -> FileChange:
        hunks = with_context(change.hunks or (), self.befores[change.call])
        # The words of an edit leave open which bytes the lines end with; what is written whole is known as it is.
        whole = change.call in self.writes and any(hunk.removed for hunk in hunks)
        return structs.replace(change, before=None, after=change.after if whole else None, hunks=hunks)

    def _writer(self, run: str) -> Writer:
        self._calls += 1
        self._busy.add(run)
        return Writer(run, f"call_{self._calls}")

    def _record(self, writer: Writer, number: int, new: File) -> None:
        old = self.tree[number]
        self.tree[number] = new
        before, after = texts_of(old.lines), texts_of(new.lines)
        if before == after and old.path == new.path:
            return
        self.befores[writer.call] = tuple(before)
        self.changes.append(
            FileChange(
                call=writer.call,
                run=writer.run,
                at=self.now,
                path=new.path,
                before=digest_of(old.data),
                after=digest_of(new.data),
                hunks=hunks_between(before, after),
                renamed_from=old.path if old.path != new.path else None,
            )
        )


def with_context(hunks: Sequence[Hunk], before: Sequence[str]) -> tuple[Hunk, ...]:
    """Return hunks with lines around them, as tools show them: those that are near each other become one."""
    groups: list[list[Hunk]] = []
    for hunk in hunks:
        last = groups[-1][-1] if groups else None
        if last is not None and hunk.old_index - last.old_index - last.old_count <= 2 * CONTEXT:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return tuple(_shown(group, before) for group in groups)


def _shown(group: Sequence[Hunk], before: Sequence[str]) -> Hunk:
    first, last = group[0], group[-1]
    start = max(first.old_index - CONTEXT, 0)
    stop = min(last.old_index + last.old_count + CONTEXT, len(before))
    removed, added, at = tuple(before[start:stop]), [], start
    for hunk in group:
        added += [*before[at : hunk.old_index], *hunk.added]
        at = hunk.old_index + hunk.old_count
    added += before[at:stop]
    new_start = first.new_index - (first.old_index - start)
    return Hunk(start + bool(removed), len(removed), new_start + bool(added), len(added), removed, tuple(added))


def generate(seed: int, commits: int = 200) -> Past:
    """Return a past with at least so many commits behind the present work tree."""
    past = Past(random.Random(seed))
    past.begin()
    while past.commits < 40 or len(reachable(past.tips["main"])) < commits:
        _step(past)
    past.switch("main")
    for _ in range(3):
        past.agent_edit(past.run())
        past.human_edit()
    past.agent_edit(past.run())
    return past


def _step(past: Past) -> None:
    doings: dict[str, tuple[float, Callable[[Past], None]]] = {
        "agent": (10, _work),
        "human": (3, _mend),
        "rename": (0.5, _rename),
        "branch": (1.2, _branch),
        "switch": (1.5, _switch),
        "merge": (0.8, _merge),
        "rebase": (0.8, _rebase),
        "squash": (0.6, _squash),
        "cherry-pick": (0.8, _cherry_pick),
    }
    name = past.rng.choices(list(doings), [weight for weight, _ in doings.values()])[0]
    before = past.commits
    doings[name][1](past)
    past.happened[name] = past.happened.get(name, 0) + (past.commits > before)


def _work(past: Past) -> None:
    run = past.run()
    if past.rng.random() < 0.15:
        past.human_edit()
    for _ in range(past.rng.randrange(1, 5)):
        past.agent_edit(run)
        if past.rng.random() < 0.12:
            past.human_edit()
        if past.rng.random() < 0.1:
            run = past.run()
    past.commit(run)


def _mend(past: Past) -> None:
    for _ in range(past.rng.randrange(1, 3)):
        past.human_edit()
    past.commit(HUMAN)


def _rename(past: Past) -> None:
    if past.branch == "main":
        run = past.run() if past.rng.random() < 0.5 else None
        past.rename(run)
        past.commit(run or HUMAN)


def _branch(past: Past) -> None:
    if len(past.tips) < 4:
        name = f"topic_{past.commits}"
        past.tips[name] = past.tips[past.branch]
        past.switch(name)


def _switch(past: Past) -> None:
    past.switch(past.rng.choice(list(past.tips)))


def _topic(past: Past) -> str | None:
    topics = [name for name in past.tips if name != "main"]
    return past.rng.choice(topics) if topics else None


def _merge(past: Past) -> None:
    topic = _topic(past)
    if topic is None:
        return
    past.switch("main")
    ours, theirs = past.tips["main"], past.tips.pop(topic)
    tree = past.merged(_base(ours, theirs), theirs)
    if tree is not None:
        past.tree = tree
        past.commit(HUMAN, ours, theirs)


def _rebase(past: Past) -> None:
    topic = _topic(past)
    if topic is None:
        return
    main, tip = past.tips["main"], past.tips[topic]
    behind = reachable(main)
    mine = [one for one in reachable(tip) if one not in set(behind)]
    past.branch, past.tree = topic, dict(main.files)
    past.tips[topic] = main
    for one in mine:
        tree = past.merged(one.parents[0], one)
        if tree is None:
            past.tips[topic] = tip
            break
        past.tree = tree
        past.commit(one.author)
    past.switch("main")
    if past.tips[topic] is not tip and past.rng.random() < 0.7:
        past.tips["main"] = past.tips.pop(topic)
        past.switch("main")


def _squash(past: Past) -> None:
    topic = _topic(past)
    if topic is None:
        return
    past.switch("main")
    theirs = past.tips.pop(topic)
    tree = past.merged(_base(past.tips["main"], theirs), theirs)
    if tree is not None:
        past.tree = tree
        past.commit(HUMAN)


def _cherry_pick(past: Past) -> None:
    topic = _topic(past)
    if topic is None:
        return
    past.switch("main")
    mine = [one for one in reachable(past.tips[topic]) if one not in set(reachable(past.tips["main"]))]
    if mine:
        picked = past.rng.choice(mine)
        tree = past.merged(picked.parents[0], picked)
        if tree is not None:
            past.tree = tree
            past.commit(picked.author)


def reachable(tip: Snapshot) -> list[Snapshot]:
    """Return a commit and all before it, parents first."""
    order: list[Snapshot] = []
    seen: set[Snapshot] = set()
    stack: list[tuple[Snapshot, bool]] = [(tip, False)]
    while stack:
        one, done = stack.pop()
        if done:
            order.append(one)
        elif one not in seen:
            seen.add(one)
            stack.append((one, True))
            stack += ((parent, False) for parent in reversed(one.parents))
    return order


def _base(ours: Snapshot, theirs: Snapshot) -> Snapshot:
    behind = set(reachable(theirs))
    return max((one for one in reachable(ours) if one in behind), key=lambda one: one.at)
