"""Two people and their agents, a remote that squashes, rebases and picks, and clones that have nobody's ledger.

Everything is done with git itself, and whose each line is is known all the time, as in the workshop. Each person's
machine has a ledger and writes notes; the server has neither, and deletes branches once they are merged.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine
from batonpass.accounts.blame.commit_notes import CommitNotes, NoteWriter, find_unnoted, write_notes
from batonpass.accounts.blame.file_blame import AskedFile, blame_file, find_names
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.accounts.blame.note_blame import NoteSource, blank_blame
from batonpass.attribution.changes.change import Certainty, FileChange
from batonpass.attribution.changes.change_document import encode_change
from batonpass.ledger.draft import Draft
from batonpass.model.base.ids import CallId, RunId, StreamId
from batonpass.model.bodies.body import Changed, ToolCompleted, ToolRequested
from batonpass.model.ledger.content import new_content
from batonpass.model.ledger.entry import Touch
from batonpass.notes.note_exchange import NoteExchange
from batonpass.notes.note_store import NoteRepository
from batonpass.notes.trusted_keys import KEYS_FILE
from batonpass.store.factory import MEMORY, open_store
from batonpass.testing.builders import Scribe, a_scribe
from batonpass.testing.clock import FrozenClock
from tests.attribution.generator import File
from tests.attribution.lines import HUMAN, Line, Writer, a_function
from tests.attribution.repository import ENVIRONMENT
from tests.attribution.workshop import FILES, Tree, UndoneError, Workshop, amend, mend, shell, work

OPEN = 3  # branches at the same time
WAYS = ("squash", "squash", "squash", "rebase", "rebase", "merge", "pick", "partial")


@dataclass(slots=True)
class Member:
    """Somebody with a clone and a ledger."""

    name: str
    shop: Workshop
    scribe: Scribe
    clock: FrozenClock
    runs: dict[str, RunId] = field(default_factory=dict)
    notes: list[CommitNotes] = field(default_factory=list)
    recorded: int = 0

    @property
    def repository(self) -> NoteRepository:
        """Return the clone."""
        return NoteRepository(self.shop.root, self.shop.environment)

    def record(self) -> None:
        """Write into the ledger what the hooks of agents would have told."""
        for change in self.shop.changes[self.recorded :]:
            self.clock.tick(change.at - self.clock.now())
            if change.run not in self.runs:
                agent = change.run.split("_")[1]
                self.runs[change.run] = self.scribe.start("Improve it", agent=f"{agent}-{self.name}").run.id
            self._append(self.runs[change.run], change)
        self.recorded = len(self.shop.changes)

    def _append(self, run: RunId, change: FileChange) -> None:
        signer, _ = self.scribe.run_keys.get(run)
        call, at = CallId(change.call), self.clock.now()
        kept = new_content("change.1", encode_change(change), at, media_type="application/json")
        changed = Changed(change=kept.ref.id, before=change.before, after=change.after)
        asked = ToolRequested(run=run, call=call, tool="Edit" if change.certainty is Certainty.CERTAIN else "Bash")
        done = ToolCompleted(run=run, call=call, changes=(changed,))
        self.scribe.ledger.append(
            Draft(stream=StreamId(run), body=asked, root=run, cosigner=signer),
            Draft(
                stream=StreamId(run),
                body=done,
                root=run,
                cosigner=signer,
                contents=(kept,),
                touches=(Touch(path=change.path, content=kept.ref.id),),
            ),
        )

    def note(self, *commits: str) -> None:
        """Write notes, as the hook of a commit and the hook of a push do."""
        self.record()
        now = self.shop.now
        with self.scribe.store.view() as view:
            writer = NoteWriter(view, self.repository, self.scribe.identity.signer, at=now)
            wanted = find_unnoted(self.repository, commits, self.scribe.identity.signer.public_key)
            found = [writer.of_commit(commit) for commit in wanted]
        write_notes(self.repository, found, at=now)
        self.notes += found

    def blame(self, file: File) -> Blame:
        """Return what this person's machine knows about a file, from the ledger alone."""
        asked = asked_file(self.shop.root, file)
        with self.scribe.store.view() as view:
            return blame_file(view, asked)


def asked_file(root: Path, file: File) -> AskedFile:
    """Return a question about a file of a clone."""
    return AskedFile(place=FilePlace(root=root, path=file.path), data=file.data, environment=ENVIRONMENT)


@dataclass(slots=True)
class TeamScore:
    """What became of the lines, in a clone without a ledger and on the machines of their authors."""

    agents: int = 0
    known: int = 0  # lines that the author's own machine names the right run for
    right: int = 0  # of those, the clone does too
    more: int = 0  # right in the clone, and not on the author's machine
    candidates: int = 0
    wrong: int = 0
    humans: int = 0
    suspected: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Return how much of what authors' machines know the clone knows."""
        return self.right / max(self.known, 1)

    def __str__(self) -> str:
        return (
            f"{self.share:.2%} of the {self.known} lines that authors' machines know (of {self.agents}), "
            f"{self.more} besides, {self.candidates} candidates, {self.wrong} wrong; "
            f"of {self.humans} lines of people {self.suspected} in doubt"
        )

    def __add__(self, other: "TeamScore") -> "TeamScore":
        names = ("agents", "known", "right", "more", "candidates", "wrong", "humans", "suspected")
        return TeamScore(
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            problems=[*self.problems, *other.problems],
        )


@dataclass(slots=True)
class Team:
    """Two members, a server, and the truth."""

    root: Path
    rng: random.Random
    members: list[Member] = field(default_factory=list)
    trees: dict[str, Tree] = field(default_factory=dict)
    server: Workshop = field(init=False)
    branches: list[str] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)
    count: int = 0

    @property
    def bare(self) -> Path:
        """Return the remote."""
        return self.root / "remote.git"

    def begin(self) -> None:
        """Make the remote, with files that a person wrote and the keys of both members."""
        self.root.mkdir(parents=True)
        self.server = self._workshop("server")
        self.server.root.mkdir()
        self.server.git("init", "--quiet", "--initial-branch=main")
        scribes: dict[str, tuple[Scribe, FrozenClock]] = {}
        for name in ("ana", "ben"):
            clock = FrozenClock(self.server.now)
            scribes[name] = a_scribe(open_store(MEMORY), clock=clock), clock
        keys = "".join(
            f'[[relay]]\nowner = "user:{name}"\nkey = "{scribe.root.public_key}"\n'
            for name, (scribe, _) in scribes.items()
        )
        (self.server.root / KEYS_FILE).write_text(keys, encoding="utf-8")
        for number in range(FILES):
            texts = [text for _ in range(5) for text in a_function(self.rng)]
            self.server.tree[number] = File(f"module_{number}.py", tuple(Writer(HUMAN).lines(texts)))
        self.server.write()
        self.server.commit("first")
        self.server.git("clone", "--quiet", "--bare", str(self.server.root), str(self.bare))
        self.server.git("remote", "add", "origin", str(self.bare))
        for name, (scribe, clock) in scribes.items():
            self.clone(self.root / name)
            self.members.append(Member(name, self._workshop(name), scribe, clock))

    def _workshop(self, name: str) -> Workshop:
        return Workshop(self.root / name, self.rng, trees=self.trees)

    def clone(self, root: Path) -> None:
        """Make a clone."""
        self.server.git("clone", "--quiet", "--no-local", str(self.bare), str(root))

    def tick(self) -> None:
        """Let all clocks go on together."""
        shops = [self.server, *(member.shop for member in self.members)]
        now = max(shop.now for shop in shops)
        for shop in shops:
            shop.now = now
            shop.tick()

    def branch(self, member: Member) -> None:
        """Let somebody and their agents work on a branch, and push it."""
        self.tick()
        shop = member.shop
        self.count += 1
        name = f"topic_{self.count}"
        shop.git("fetch", "--quiet", "--prune", "origin")
        shop.git("checkout", "--quiet", "-B", name, "origin/main")
        shop.branch, shop.tree = name, dict(self.trees[shop.head()])
        for _ in range(self.rng.randrange(1, 4)):
            before = shop.head()
            self.rng.choices((work, mend, shell, _amend), (4, 1, 1, 1))[0](shop)
            if shop.head() != before:
                member.note(shop.head())
        self.exchange(member)
        shop.git("push", "--quiet", "--force", "origin", name)
        self.branches.append(name)

    def help_out(self, member: Member) -> None:
        """Let somebody go on with a branch that another began."""
        self.tick()
        shop = member.shop
        name = self.rng.choice(self.branches)
        shop.git("fetch", "--quiet", "--prune", "origin")
        shop.git("checkout", "--quiet", "-B", name, f"origin/{name}")
        shop.branch, shop.tree = name, dict(self.trees[shop.head()])
        work(shop)
        member.note(shop.head())
        if self.rng.random() < 0.4:
            self._rebase_locally(member)
        self.exchange(member)
        shop.git("push", "--quiet", "--force", "origin", name)

    def _rebase_locally(self, member: Member) -> None:
        shop = member.shop
        tip = shop.head()
        try:
            states = self._rebased(shop, "origin/main")
            shop.tree = states
            shop._compare()
            member.note(*shop.git("rev-list", "origin/main..HEAD").split())
        except UndoneError:
            shop.git("rebase", "--abort", fails=True)
            shop.git("reset", "--quiet", "--hard", tip)
            shop.tree = dict(self.trees[tip])

    def exchange(self, member: Member) -> None:
        """Fetch, merge and send notes, as the hook of a push does."""
        member.note(*member.repository.missing_from("origin", most=50))
        NoteExchange(member.repository, "origin").run(at=member.shop.now)

    def join(self) -> None:
        """Let the server merge a branch in one of its ways, and delete it."""
        self.tick()
        name = self.branches.pop(self.rng.randrange(len(self.branches)))
        server = self.server
        server.git("fetch", "--quiet", "--prune", "origin")
        server.git("checkout", "--quiet", "-B", "main", "origin/main")
        ours, theirs = server.head(), server.git("rev-parse", f"origin/{name}")
        server.tree = dict(self.trees[ours])
        way = self.rng.choice(WAYS)
        try:
            server.tree = self._ways()[way](theirs)
            server._compare()
        except UndoneError:
            for undo in ("rebase", "cherry-pick", "merge"):
                server.git(undo, "--abort", fails=True)
            server.git("checkout", "--quiet", "--force", "-B", "main", ours)
            server.git("reset", "--quiet", "--hard", ours)
            server.tree = dict(self.trees[ours])
            way = "undone"
        else:
            self.trees[server.head()] = dict(server.tree)
            server.git("push", "--quiet", "origin", "HEAD:main")
        self.happened[way] = self.happened.get(way, 0) + 1
        server.git("push", "--quiet", "origin", "--delete", name)

    def _ways(self) -> dict[str, Callable[[str], Tree]]:
        return {
            "squash": self._squash,
            "rebase": self._rebase,
            "merge": self._merge,
            "pick": self._pick,
            "partial": self._partial,
        }

    def _together(self, theirs: str) -> Tree:
        server = self.server
        base = server.git("merge-base", "HEAD", theirs)
        return server.put_together(self.trees[base], server.tree, self.trees[theirs])

    def _squash(self, theirs: str) -> Tree:
        tree = self._together(theirs)
        self.server.git("merge", "--quiet", "--squash", theirs)
        self.server.git("commit", "--quiet", f"--message=A pull request (#{self.count})")
        return tree

    def _merge(self, theirs: str) -> Tree:
        tree = self._together(theirs)
        self.server.git("merge", "--quiet", "--no-ff", "--no-edit", theirs)
        return tree

    def _rebase(self, theirs: str) -> Tree:
        server = self.server
        main = server.head()
        server.git("checkout", "--quiet", "--detach", theirs)
        server.tree = dict(self.trees[theirs])
        tree = self._rebased(server, main)
        server.git("checkout", "--quiet", "-B", "main")
        return tree

    def _rebased(self, shop: Workshop, onto: str) -> Tree:
        mine = shop.commits(f"{onto}..HEAD")
        if not mine:
            raise UndoneError("there is nothing to rebase")
        start = shop.git("rev-parse", onto)
        states = [dict(self.trees[start])]
        for one in mine:
            states.append(shop.put_together(self.trees[shop.parent(one)], states[-1], self.trees[one]))
        shop.git("rebase", "--quiet", onto)
        new = shop.commits(f"{start}..HEAD")
        if len(new) != len(mine):
            raise UndoneError("a commit is gone")
        self.trees |= dict(zip(new, states[1:], strict=True))
        return states[-1]

    def _pick(self, theirs: str) -> Tree:
        server = self.server
        mine = server.commits(f"HEAD..{theirs}")
        if not mine:
            raise UndoneError("there is nothing to pick")
        one = self.rng.choice(mine)
        tree = server.put_together(self.trees[server.parent(one)], server.tree, self.trees[one])
        server.git("cherry-pick", one)
        return tree

    def _partial(self, theirs: str) -> Tree:
        server = self.server
        number = self.rng.choice(list(server.tree))
        there = self.trees[theirs][number]
        if there.data == server.tree[number].data or there.path != server.tree[number].path:
            raise UndoneError("it is the same")
        server.git("checkout", "--quiet", theirs, "--", there.path)
        server.git("commit", "--quiet", "--message=Only this file")
        return {**server.tree, number: there}

    def settle(self) -> None:
        """Let everybody check out what the server made."""
        for member in self.members:
            member.shop.git("fetch", "--quiet", "--prune", "origin")
            member.shop.git("checkout", "--quiet", "-B", "main", "origin/main")
            self.exchange(member)

    def score(self, fresh: Path) -> TeamScore:
        """Compare what a clone says with what happened, and with what the machines of the authors know."""
        found = TeamScore()
        source: NoteSource | None = None
        names = {str(run): name for member in self.members for name, run in member.runs.items()}
        calls = {change.call: change.run for member in self.members for change in member.shop.changes}
        owners = {change.call: member for member in self.members for change in member.shop.changes}
        for file in self.server.tree.values():
            asked = asked_file(fresh, file)
            source = source or NoteSource.find(asked)
            assert source is not None
            history = find_names(asked)
            told = source.fill(blank_blame(asked, None, history), asked, history)
            known = {member.name: member.blame(file) for member in self.members}
            for number, (answer, line) in enumerate(zip(told.lines, file.lines, strict=True)):
                assert answer.text == line.text
                owner = owners.get(line.call)
                here = None if owner is None else known[owner.name].lines[number]
                problem = _compare(found, answer, line, here, names=names, calls=calls)
                if problem is not None:
                    found.problems.append(f"{self.root.name} {file.path}:{number + 1} {line.text!r}: {problem}")
        return found


def _compare(
    score: TeamScore,
    answer: BlamedLine,
    line: Line,
    here: BlamedLine | None,
    *,
    names: dict[str, str],
    calls: dict[str, str],
) -> str | None:
    run = None if answer.run is None else names[answer.run]
    among = {calls[call] for call in answer.calls}
    shut = bool(answer.calls) and answer.run is None and not answer.or_nobody
    sure = answer.calls[0] if answer.run is not None and len(answer.calls) == 1 else None
    wrong = run not in {None, line.run} or sure not in {None, line.call} or (shut and line.run not in among)
    score.wrong += wrong
    if line.run == HUMAN:
        score.humans += 1
        score.suspected += bool(answer.calls)
    else:
        score.agents += 1
        knows = here is not None and here.run is not None and names[here.run] == line.run
        score.known += knows
        score.right += knows and run == line.run
        score.more += not knows and run == line.run
        score.candidates += run is None and line.run in among
        if knows and run is None and not wrong:
            return f"missed ({answer.known}, {answer.commit and answer.commit.id[:8]})"
    return f"WRONG: {run} {sure} {among}, and it is {line.run} {line.call}" if wrong else None


def _amend(shop: Workshop) -> None:
    if shop.git("rev-list", "--count", "origin/main..HEAD") != "0":
        amend(shop, shop.run() if shop.rng.random() < 0.5 else None)


def play(seed: int, root: Path, rounds: int = 12) -> Team:
    """Return a team after so many branches were made and merged."""
    team = Team(root, random.Random(seed))
    team.begin()
    for _ in range(rounds):
        member = team.rng.choice(team.members)
        team.branch(member)
        if team.rng.random() < 0.3:
            try:
                team.help_out(team.rng.choice(team.members))
            except UndoneError:
                team.happened["not helped"] = team.happened.get("not helped", 0) + 1
        while len(team.branches) >= OPEN or (team.branches and team.rng.random() < 0.4):
            team.join()
    while team.branches:
        team.join()
    team.settle()
    return team


def fresh_clone(team: Team, name: str, *options: str) -> Path:
    """Return a clone that nobody has worked in, with the notes that are on the remote."""
    root = team.root / name
    team.server.git("clone", "--quiet", "--no-local", *options, team.bare.as_uri(), str(root))
    NoteExchange(NoteRepository(root, ENVIRONMENT), "origin").run(at=team.server.now, sends=False)
    return root
