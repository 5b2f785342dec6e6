"""Asking git about a file: read only, and nothing that the repository's own settings could start.

A repository may be hostile: its files may have any name, and its configuration may name programs. So there is no shell,
paths are never patterns, and what git would start on its own (a pager, a file monitor, filters, drivers that turn files
into text, signature checks, fetching what is missing) is off or not asked for. A repository of somebody else, which git
refuses to read, stays unread. The caller gives the environment; of its variables for git, only those about
configuration are passed on.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.git_history import Commit

TRAILER: Final = "Batonpass-Run"
NO_COMMIT: Final = "0" * 40

_ANSWER_WITHIN: Final = timedelta(seconds=20)
_LARGEST_BLOB: Final = 16 * 1024 * 1024
_QUIET: Final = (
    "--no-pager",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c",
    "core.quotepath=off",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.commitGraph=true",
    "-c",
    "log.showSignature=false",
    "-c",
    "blame.ignoreRevsFile=",
    "-c",
    "diff.external=",
    "-c",
    "protocol.allow=never",  # older gits fetch what a partial clone lacks, with a program that it names
    "-c",
    "safe.bareRepository=explicit",  # files of a work tree that look like a repository are none
)
_SETTINGS: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")
_FIXED: Final = MappingProxyType(
    {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
)
_LOG: Final = f"%H%x00%P%x00%ct%x00%at%x00%an <%ae>%x00%(trailers:key={TRAILER},valueonly,separator=%x0a)%x00%B"
_FIELDS: Final = 7
# What git writes into a message: `commit ID` of a squash, `(cherry picked from commit ID)`, `This reverts commit ID.`
_NAMED: Final = re.compile(
    r"^(This reverts |\(cherry picked from )?commit ([0-9a-f]{40}|[0-9a-f]{64})[.,)]?", re.MULTILINE
)
_REVERTS: Final = "This reverts "
_COMMITTED: Final = re.compile(rb"^committer .*> (-?[0-9]+) [^\n]*$", re.MULTILINE)
_SHA1: Final = 40
_EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_EMPTY_TREE_256: Final = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
_HEAD: Final = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) (-?[0-9]+)")


class GitSilentError(Exception):
    """Git gave no answer; the message says why. It never leaves this package: an answer without git says so."""


class Logged(Struct, frozen=True, kw_only=True):
    """A commit that changed the file, and the next such commits before it."""

    commit: Commit
    parents: tuple[str, ...]
    runs: tuple[str, ...]
    authored_at: datetime  # stays the same when a commit is rebased, picked or amended
    subject: str = ""
    made_from: tuple[str, ...] = ()  # commits that its message says it repeats
    reverts: tuple[str, ...] = ()


class Version(Struct, frozen=True, kw_only=True):
    """What a commit made of a file: the object that it has there, of zeros alone if it has none."""

    commit: str
    at: datetime
    blob: str


class Repository(Struct, frozen=True):
    """A git repository with a work tree."""

    root: Path
    environment: Mapping[str, str]
    answer_within: timedelta = _ANSWER_WITHIN
    at: str = "HEAD"  # the commit that is asked about: as if it were checked out

    def commit_of(self, name: str) -> str | None:
        """Return the commit that people call so: a hash, a branch, a tag, `HEAD~2`; None if nothing is called so."""
        try:
            return self._text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
        except GitSilentError:
            return None

    def parent_of(self, commit: str) -> str:
        """Return the first parent of a commit; of a root, the tree that has nothing in it."""
        return self.commit_of(f"{commit}^") or (_EMPTY_TREE if len(commit) == _SHA1 else _EMPTY_TREE_256)

    def common(self, one: str, other: str) -> str | None:
        """Return the commit from which two went apart; None if they have none in common."""
        try:
            return self._text("merge-base", one, other).strip()
        except GitSilentError:
            return None

    def diff(self, base: str, head: str | None, below: str = "") -> tuple[str, str]:
        """Return which files differ, ended by zero bytes, and their hunks in the same order; None is the work tree."""
        what = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "-M", "--ignore-submodules")
        spans = (base,) if head is None else (base, head)
        names = self._text(*what, "--name-status", "-z", *spans, "--", *filter(None, (below,)))
        return names, self._text(*what, "--unified=0", *spans, "--", *filter(None, (below,)))

    def untracked(self, below: str = "") -> list[str]:
        """Return the files that git neither has nor ignores."""
        found = self._text("ls-files", "--others", "--exclude-standard", "-z", "--", *filter(None, (below,)))
        return [path for path in found.split("\0") if path]

    def head(self) -> str | None:
        """Return the commit of the work tree; None before the first."""
        try:
            return self._text("rev-parse", "--verify", "--quiet", f"{self.at}^{{commit}}").strip()
        except GitSilentError:
            if self._text("rev-parse", "--is-inside-work-tree").strip() == "true":
                return None
            raise

    def head_with(self, path: str) -> tuple[str | None, str | None]:
        """Return the commit of the work tree and the object that it has at a path, by one question."""
        printed = self._batch("--batch-check", (f"{self.at}^{{commit}}", f"{self.at}:{path}"))
        line, _, rest = printed.partition(b"\n")
        match line.decode("ascii", "replace").split(" "):
            case [commit, "commit", _]:
                return commit, _named_blob(rest)
            case _:
                return None, None

    def renames(self, path: str, *, since: datetime | None) -> list[str]:
        """Return what a file was called before, the latest name first."""
        what = ("--follow", "-M", "--diff-filter=R", "--name-status", "--no-ext-diff", "-z", "--format=")
        printed = self._text("log", *what, *_since(since), self.at, "--", path)
        tokens = iter(printed.split("\0"))
        names = (next(tokens, "") for token in tokens if token.strip().startswith("R"))
        return list(dict.fromkeys(name for old in names if (name := old) and next(tokens, None) is not None))

    def renamed_to(self, path: str) -> str | None:
        """Return what the commit that took a path away calls that file; None if it called it nothing."""
        last = ("--diff-filter=D", "--no-renames", "--max-count=1", "--format=%H")
        gone = self._text("log", *last, self.at, "--", path).strip()
        if not gone:
            return None
        what = ("-M", "--diff-filter=R", "--name-status", "--no-ext-diff", "-z", "--format=")
        tokens = iter(self._text("show", *what, gone).split("\0"))
        for token in tokens:
            if token.strip().startswith("R") and (next(tokens, None), new := next(tokens, None))[0] == path:
                return new
        return None

    def log(self, paths: Sequence[str], *, since: datetime | None, most: int) -> list[Logged]:
        """Return the commits that made a file what it is, parents first, and at most so many of the latest."""
        return self._log([self.at], paths, since, most)

    def log_aside(self, paths: Sequence[str], *, since: datetime | None, most: int) -> list[Logged]:
        """Return the commits that changed a file and do not lead to the head: of other branches, and left behind.

        What a rebase, an amendment or a deleted branch leaves behind is in the logs of references for a while.
        """
        return self._log(["--all", "--reflog", "--not", self.at], paths, since, most)

    def _log(self, tips: Sequence[str], paths: Sequence[str], since: datetime | None, most: int) -> list[Logged]:
        what = ("--topo-order", "--parents", "-z", f"--format={_LOG}", f"--max-count={most}")
        fields = self._text("log", *what, *_since(since), *tips, "--", *paths).split("\0")
        rows = [fields[start : start + _FIELDS] for start in range(0, len(fields) - _FIELDS + 1, _FIELDS)]
        return [_logged(row) for row in reversed(rows)]

    def reachable(self, commits: Iterable[str], *, without: str | None, most: int) -> list[str]:
        """Return these commits and all before them, but for another and all before that, the latest first."""
        wanted = (*commits, *(() if without is None else ("--not", without)))
        return self._text("rev-list", f"--max-count={most}", *wanted, "--").split()

    def versions(self, path: str, *, most: int) -> list[Version]:
        """Return what the latest commits made of a file, the latest first."""
        what = ("--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "-z", f"--max-count={most}")
        printed = self._text("log", *what, "--format=%x00%H %ct", self.at, "--", path)
        found: list[Version] = []
        commit, at = "", _moment("0")
        rest = iter(printed.split("\0"))
        for each in rest:
            said = each.lstrip("\n")
            if said.startswith(":"):
                # `:100644 100644 OLD NEW M`; then comes the path, which may look like anything and is not read.
                found.append(Version(commit=commit, at=at, blob=said.split(" ")[3]))
                next(rest, None)
            elif (head := _HEAD.fullmatch(said)) is not None:
                commit, at = head[1], _moment(head[2])
        return found

    def blobs(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return the names of the objects that commits have at paths, where they have a file there."""
        asked = list(wanted)
        printed = self._batch("--batch-check", (f"{commit}:{path}" for commit, path in asked))
        found: dict[tuple[str, str], str] = {}
        rest = printed
        for key in asked:
            # A name may have a line feed in it, and git repeats it if there is no such file.
            missing = _bytes(f"{key[0]}:{key[1]} missing\n")
            if rest.startswith(missing):
                rest = rest[len(missing) :]
                continue
            line, _, rest = rest.partition(b"\n")
            if (name := _named_blob(line)) is not None:
                found[key] = name
        return found

    def contents(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield objects with their bytes."""
        rest = memoryview(self._batch("--batch", dict.fromkeys(blobs)))
        while rest:
            line = bytes(rest[:200]).partition(b"\n")[0]
            start = len(line) + 1
            match line.decode("ascii", "replace").split(" "):
                case [name, _, size]:
                    yield name, bytes(rest[start : start + int(size)])
                    rest = rest[start + int(size) + 1 :]
                case _:
                    rest = rest[start:]  # it is missing: a part of the repository was never fetched

    def blame(self, commit: str, path: str, spans: Iterable[tuple[int, int]] = ()) -> dict[int, Commit]:
        """Return for lines that a commit has at a path, from 1, the commit that brought them; without spans for all."""
        which = [f"-L{first},{last}" for first, last in spans]
        printed = self._text("blame", "--porcelain", "--no-textconv", *which, commit, "--", path)
        known: dict[str, Commit] = {}
        facts: dict[str, str] = {}
        blamed: dict[int, Commit] = {}
        name, number = "", 0
        for line in printed.split("\n"):
            if line.startswith("\t"):
                if name not in known:
                    known[name] = _commit(name, facts)
                blamed[number] = known[name]
                name, facts = "", {}
            elif not name:
                name, _, place = line.partition(" ")
                number = int(place.split(" ")[1]) if name else 0
            else:
                key, _, value = line.partition(" ")
                facts[key] = value
        return blamed

    def _batch(self, mode: str, questions: Iterable[str]) -> bytes:
        asked = _bytes("".join(f"{question}\0" for question in questions))
        return self._run(["cat-file", "-z", mode], asked) if asked else b""

    def _text(self, *arguments: str) -> str:
        return self._run(arguments).decode("utf-8", "surrogateescape")

    def _run(self, arguments: Sequence[str], given: bytes = b"") -> bytes:
        command = ["git", "-C", str(self.root), *_QUIET, *arguments]
        passed = {
            name: value
            for name, value in self.environment.items()
            if not name.startswith(("GIT_", "LC_", "LANG")) or name in _SETTINGS
        }
        try:
            done = subprocess.run(  # noqa: S603 - our own arguments as a list, and no shell
                command,
                input=given,
                capture_output=True,
                check=False,
                env={**passed, **_FIXED},
                timeout=self.answer_within.total_seconds(),
            )
        except FileNotFoundError:
            raise GitSilentError("git is not installed here") from None
        except (OSError, ValueError) as error:  # too long an argument; a name with a zero byte in it
            raise GitSilentError(f"git could not be asked: {error}") from None
        except subprocess.TimeoutExpired:
            raise GitSilentError(f"git gave no answer within {self.answer_within.total_seconds():g} s") from None
        if done.returncode != 0:
            raise GitSilentError(_complaint(done.stderr))
        return done.stdout


def _named_blob(line: bytes) -> str | None:
    match line.decode("ascii", "replace").split():
        case [name, "blob", size] if int(size) <= _LARGEST_BLOB:
            return name
        case _:
            return None


def blob_name(data: bytes, like: str) -> str:
    """Return what git calls these bytes, in a repository whose objects are named like this one."""
    made = hashlib.new("sha1" if len(like) == _SHA1 else "sha256", usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()


def committed_at(data: bytes) -> datetime:
    """Return when a commit was made or rewritten, from its bytes."""
    found = _COMMITTED.search(data.partition(b"\n\n")[0])
    return _moment(found[1].decode("ascii") if found else "0")


def _logged(row: Sequence[str]) -> Logged:
    name, parents, seconds, authored, author, runs, message = row
    named = [(found[1] == _REVERTS, found[2]) for found in _NAMED.finditer(message)]
    return Logged(
        commit=Commit(id=name, author=author, at=_moment(seconds)),
        parents=tuple(parents.split()),
        runs=tuple(filter(None, runs.split("\n"))),
        authored_at=_moment(authored),
        subject=message.partition("\n")[0],
        made_from=tuple(commit for is_undone, commit in named if not is_undone),
        reverts=tuple(commit for is_undone, commit in named if is_undone),
    )


def _since(moment: datetime | None) -> list[str]:
    return [] if moment is None else [f"--since={moment.isoformat()}"]


def _complaint(said: bytes) -> str:
    words = said.decode("utf-8", "replace").strip().removeprefix("fatal: ")
    if "dubious ownership" in words:
        return "the repository belongs to somebody else; git reads it once its safe.directory setting names it"
    return words.partition("\n")[0] or "git failed and did not say why"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _moment(seconds: str) -> datetime:
    # Commits say any time they like; what no calendar has is as good as unknown.
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _commit(name: str, facts: Mapping[str, str]) -> Commit:
    author = f"{facts.get('author', '')} {facts.get('author-mail', '')}".strip()
    return Commit(id=name, author=author, at=_moment(facts.get("committer-time", "0")))
