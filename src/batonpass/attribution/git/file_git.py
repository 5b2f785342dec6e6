"""Asks git about files: read only, and without starting any program that the repository configures (git_process.py)."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.git_history import Commit, CommittedLine, Logged
from batonpass.attribution.git.git_process import EMPTY_VARIABLE, GitProcess
from batonpass.attribution.git.git_process import GitSilentError as GitSilentError  # noqa: PLC0414 - all questions raise it

TRAILER: Final = "Batonpass-Run"

_ANSWER_WITHIN: Final = timedelta(seconds=20)
_LARGEST_BLOB: Final = 16 * 1024 * 1024
_LOG: Final = f"%H%x00%P%x00%ct%x00%at%x00%an <%ae>%x00%(trailers:key={TRAILER},valueonly,separator=%x0a)%x00%B"
_FIELDS: Final = 7
# Messages written by git: `commit ID` of a squash, `(cherry picked from commit ID)`, `This reverts commit ID.`
_NAMED: Final = re.compile(
    r"^(This reverts |\(cherry picked from )?commit ([0-9a-f]{40}|[0-9a-f]{64})[.,)]?", re.MULTILINE
)
_REVERTS: Final = "This reverts "
_COMMITTED: Final = re.compile(rb"^committer .*> (-?[0-9]+) [^\n]*$", re.MULTILINE)
_FILTER: Final = re.compile(r"filter\.(.*)\.(?:clean|smudge|process|required)", re.DOTALL)
_SHA1: Final = 40
# By the length of object names. Git knows the tree without files, whether or not it is stored.
EMPTY_TREE: Final = {
    _SHA1: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEAD: Final = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) (-?[0-9]+)")


class Version(Struct, frozen=True, kw_only=True):
    """The object that a commit made of a file; all zeros if it removed the file."""

    commit: str
    at: datetime
    blob: str


class CommitLine(Struct, frozen=True, kw_only=True):
    """Where a line comes from: the commit, its number there, and git's headers about both, in git's order."""

    commit: str
    line: int
    headers: dict[str, str]


class Repository(Struct, frozen=True):
    """A git repository with a work tree."""

    root: Path
    environment: Mapping[str, str]
    answer_within: timedelta = _ANSWER_WITHIN
    at: str = "HEAD"  # answer as if this commit were checked out

    def commit_of(self, name: str) -> str | None:
        """Return the commit with this name: a hash, a branch, a tag, `HEAD~2`; None if there is none."""
        return self._find("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def parent_of(self, commit: str) -> str:
        """Return the first parent of a commit; for a root commit, the empty tree."""
        return self.commit_of(f"{commit}^") or EMPTY_TREE[len(commit)]

    def common(self, one: str, other: str) -> str | None:
        """Return the merge base of two commits; None if they have none."""
        return self._find("merge-base", one, other)

    def diff(self, base: str, head: str | None, below: str = "") -> tuple[str, str]:
        """Return the names of changed files, separated by zero bytes, and their hunks in the same order.

        Without a head, the work tree is compared.
        """
        what = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "-M", "--ignore-submodules")
        spans = (base,) if head is None else (base, head)
        # Files of the work tree are compared as a commit would store them, and a filter would make that of them.
        safely = () if head is not None else tuple(self.without_filters())
        names = self._text(*safely, *what, "--name-status", "-z", *spans, "--", *filter(None, (below,)))
        return names, self._text(*safely, *what, "--unified=0", *spans, "--", *filter(None, (below,)))

    def tracks(self, path: str) -> bool:
        """Return whether git has a file at this path in its index."""
        return bool(self._text("ls-files", "--cached", "-z", "--", path))

    def tracked(self, below: str = "") -> list[str]:
        """Return the files that git has in its index, all or those below a directory."""
        found = self._text("ls-files", "--cached", "-z", "--", *filter(None, (below,)))
        return [path for path in found.split("\0") if path]

    def untracked(self, below: str = "") -> list[str]:
        """Return the files that git neither tracks nor ignores."""
        found = self._text("ls-files", "--others", "--exclude-standard", "-z", "--", *filter(None, (below,)))
        return [path for path in found.split("\0") if path]

    def head(self) -> str | None:
        """Return the checked out commit; None before the first."""
        try:
            return self._text("rev-parse", "--verify", "--quiet", f"{self.at}^{{commit}}").strip()
        except GitSilentError:
            if self._text("rev-parse", "--is-inside-work-tree").strip() == "true":
                return None
            raise

    def head_with(self, path: str) -> tuple[str | None, str | None]:
        """Return the checked out commit and the object it has at a path, with one question."""
        printed = self._batch("--batch-check", (f"{self.at}^{{commit}}", f"{self.at}:{path}"))
        line, _, rest = printed.partition(b"\n")
        match line.decode("ascii", "replace").split(" "):
            case [commit, "commit", _]:
                return commit, _named_blob(rest)
            case _:
                return None, None

    def renames(self, path: str, *, since: datetime | None) -> list[str]:
        """Return the earlier names of a file, latest first."""
        what = ("--follow", "-M", "--diff-filter=R", "--name-status", "--no-ext-diff", "-z", "--format=")
        printed = self._text("log", *what, *_since(since), self.at, "--", path)
        tokens = iter(printed.split("\0"))
        names = (next(tokens, "") for token in tokens if token.strip().startswith("R"))
        return list(dict.fromkeys(name for old in names if (name := old) and next(tokens, None) is not None))

    def renamed_to(self, path: str) -> str | None:
        """Return the name that a removed file got in the commit that removed it; None if it was deleted."""
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
        """Return the commits that led to a file's present content, parents first; at most so many of the latest."""
        return self._log([self.at], paths, since, most)

    def log_aside(self, paths: Sequence[str], *, since: datetime | None, most: int) -> list[Logged]:
        """Return the commits that changed a file and do not lead to the head: other branches, and abandoned commits.

        Commits that a rebase, an amendment or a deleted branch left behind stay in the reference logs for a while.
        """
        return self._log(["--all", "--reflog", "--not", self.at], paths, since, most)

    def _log(self, tips: Sequence[str], paths: Sequence[str], since: datetime | None, most: int) -> list[Logged]:
        what = ("--topo-order", "--parents", "-z", f"--format={_LOG}", f"--max-count={most}")
        fields = self._text("log", *what, *_since(since), *tips, "--", *paths).split("\0")
        rows = [fields[start : start + _FIELDS] for start in range(0, len(fields) - _FIELDS + 1, _FIELDS)]
        return [_logged(row) for row in reversed(rows)]

    def reachable(self, commits: Iterable[str], *, without: str | None, most: int) -> list[str]:
        """Return the commits reachable from some and not from another, latest first."""
        wanted = (*commits, *(() if without is None else ("--not", without)))
        return self._text("rev-list", f"--max-count={most}", *wanted, "--").split()

    def versions(self, path: str, *, most: int) -> list[Version]:
        """Return the versions of a file from the latest commits, latest first."""
        what = ("--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "-z", f"--max-count={most}")
        printed = self._text("log", *what, "--format=%x00%H %ct", self.at, "--", path)
        found: list[Version] = []
        commit, at = "", _moment("0")
        rest = iter(printed.split("\0"))
        for each in rest:
            said = each.lstrip("\n")
            if said.startswith(":"):
                # `:100644 100644 OLD NEW M`; the path follows, which may contain anything and is skipped.
                found.append(Version(commit=commit, at=at, blob=said.split(" ")[3]))
                next(rest, None)
            elif (head := _HEAD.fullmatch(said)) is not None:
                commit, at = head[1], _moment(head[2])
        return found

    def blobs(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return the object names at commits and paths, where there is a file."""
        asked = list(wanted)
        printed = self._batch("--batch-check", (f"{commit}:{path}" for commit, path in asked))
        found: dict[tuple[str, str], str] = {}
        rest = printed
        for key in asked:
            # A name may contain a line feed, and git echoes it if the file is missing.
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
                    rest = rest[start:]  # a missing object: the clone is partial

    def origins(
        self, commit: str, path: str, spans: Iterable[tuple[int, int]] = (), *, by_words: bool = False
    ) -> dict[int, CommitLine]:
        """Return where each line of a file at a commit comes from, by number from 1; by default all lines.

        `by_words`: where its words come from, also if its white space changed or it moved within the file since.
        """
        which = [*(("-w", "-M") if by_words else ()), *(f"-L{first},{last}" for first, last in spans)]
        printed = self._text("blame", "--porcelain", "--no-textconv", *which, commit, "--", path)
        known: dict[str, dict[str, str]] = {}
        found: dict[int, CommitLine] = {}
        facts: dict[str, str] = {}
        name, line, number = "", 0, 0
        for text in printed.split("\n"):
            if text.startswith("\t"):
                # Git tells of a commit once, and later only the difference: the name of the file in it.
                if facts or name not in known:
                    known[name] = {**known.get(name, {}), **facts}
                found[number] = CommitLine(commit=name, line=line, headers=known[name])
                name, facts = "", {}
            elif not name:
                name, _, place = text.partition(" ")
                line, number = (int(one) for one in place.split(" ")[:2]) if name else (0, 0)
            else:
                key, _, value = text.partition(" ")
                facts[key] = value
        return found

    def filters(self) -> set[str]:
        """Return the names of all filters that the configuration has."""
        try:
            printed = self._text("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
        except GitSilentError:  # none
            return set()
        return {match[1] for name in printed.split("\0") if (match := _FILTER.fullmatch(name))}

    def without_filters(self) -> Iterator[str]:
        """Yield options of git that disable all filters, for questions that would run one."""
        for name in sorted(self.filters()):
            for setting in ("clean", "smudge", "process", "required"):
                # Not -c, which ends the name at its first equals sign.
                yield f"--config-env=filter.{name}.{setting}={EMPTY_VARIABLE}"

    def _batch(self, mode: str, questions: Iterable[str]) -> bytes:
        asked = _bytes("".join(f"{question}\0" for question in questions))
        return self._run(["cat-file", "-z", mode], asked) if asked else b""

    def _find(self, *arguments: str) -> str | None:
        try:
            return self._text(*arguments).strip()
        except GitSilentError:
            return None

    def _text(self, *arguments: str) -> str:
        return self._run(arguments).decode("utf-8", "surrogateescape")

    def _run(self, arguments: Sequence[str], given: bytes = b"") -> bytes:
        git = GitProcess(root=self.root, environment=self.environment, answer_within=self.answer_within)
        return git.run(arguments, given)


def _named_blob(line: bytes) -> str | None:
    match line.decode("ascii", "replace").split():
        case [name, "blob", size] if int(size) <= _LARGEST_BLOB:
            return name
        case _:
            return None


def blob_name(data: bytes, like: str) -> str:
    """Return git's object name for these bytes, with the hash that this other name uses."""
    made = hashlib.new("sha1" if len(like) == _SHA1 else "sha256", usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()


def committed_at(data: bytes) -> datetime:
    """Return the commit time from the bytes of a commit."""
    found = _COMMITTED.search(data.partition(b"\n\n")[0])
    return _moment(found[1].decode("ascii") if found else "0")


def _logged(row: Sequence[str]) -> Logged:
    name, parents, seconds, authored, author, runs, message = row
    named = [(found[1] == _REVERTS, found[2]) for found in _NAMED.finditer(message)]
    return Logged(
        commit=name,
        at=_moment(seconds),
        author=author,
        parents=tuple(parents.split()),
        runs=tuple(filter(None, runs.split("\n"))),
        authored_at=_moment(authored),
        subject=message.partition("\n")[0],
        made_from=tuple(commit for is_undone, commit in named if not is_undone),
        reverts=tuple(commit for is_undone, commit in named if is_undone),
    )


def _since(moment: datetime | None) -> list[str]:
    return [] if moment is None else [f"--since={moment.isoformat()}"]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _moment(seconds: str) -> datetime:
    # A commit may claim any time; an impossible one counts as unknown.
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def line_origin(origin: CommitLine, path: str) -> CommittedLine:
    """Return where a line comes from, as a value of a history; `path` is the file, where git names no other."""
    named = origin.headers.get("filename")
    return CommittedLine(commit=commit_of(origin), path=path if named is None else _unquoted(named), line=origin.line)


def _unquoted(name: str) -> str:
    # Git quotes a name with a control character, a quote or a backslash, also where other bytes are left alone.
    if len(name) < len('""') or not (name.startswith('"') and name.endswith('"')):
        return name
    return _ESCAPE.sub(_escaped, name[1:-1])


def _escaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8)) if found[1][0].isdigit() else _ESCAPED.get(found[1], found[1])


def commit_of(origin: CommitLine) -> Commit:
    """Return the commit of a line as answers show it."""
    facts = origin.headers
    author = f"{facts.get('author', '')} {facts.get('author-mail', '')}".strip()
    return Commit(id=origin.commit, author=author, at=_moment(facts.get("committer-time", "0")))
