"""The git repository of the current directory: its hooks, its staged files, and the seals in its commits."""

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from batonpass.accounts.blame.committed_runs import Sides
from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.git_process import GitProcess, GitSilentError
from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.note import from_trailer, parse_note
from batonpass.ledger.seals import origin_of
from batonpass.model.base.ids import LedgerId

TRAILER: Final = "Batonpass-Seal"

_MOST_FILES: Final = 1000  # of a commit: nobody has worked on more than that one by one
_LARGEST_FILE: Final = 2 * 1024 * 1024
_READ_AT_ONCE: Final = 50
_SUBMODULE: Final = "160000"


class GitError(click.ClickException):
    """A git command failed."""

    code = "git.failed"


class Seals(Struct, frozen=True, kw_only=True):
    """The seals in commits: those of one ledger, and the number of foreign and of unreadable ones."""

    notes: tuple[str, ...]
    foreign: int
    unreadable: int


class Staged(Struct, frozen=True, kw_only=True):
    """The staged files: the git objects of each file before and after the commit."""

    root: Path
    since: datetime | None  # when the parent was committed
    files: Mapping[str, tuple[str, str]]

    def sides(self, paths: Collection[str]) -> dict[str, Sides]:
        """Return these files by the digests of their bytes. Raises `GitError`."""
        wanted = [name for path in paths for name in self.files[path] if name.strip("0")]
        digests = {name: digest_of(data) for name, data in self._read(list(dict.fromkeys(wanted)))}
        return {path: Sides(*map(digests.get, self.files[path])) for path in paths}

    def _read(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        repository = Repository(self.root, os.environ)
        # Objects that are missing, as in a partial clone, or too large to read at every commit have no digest.
        sizes = git("cat-file", "--batch-check", text="".join(f"{name}\n" for name in names)) if names else ""
        facts = (line.split(" ") for line in sizes.splitlines())
        names = [name for name, kind, *size in facts if kind == "blob" and int(size[0]) <= _LARGEST_FILE]
        try:
            for start in range(0, len(names), _READ_AT_ONCE):
                yield from repository.contents(names[start : start + _READ_AT_ONCE])
        except GitSilentError as error:
            raise GitError(str(error)) from None


def git(*arguments: str, text: str | None = None, sees_hooks: bool = False) -> str:
    """Run git here, also in a hook, and return its output. Raises `GitError` with git's message."""
    process = GitProcess(root=None, environment=os.environ, in_hook=True, sees_hooks=sees_hooks)
    try:
        return process.run(arguments, (text or "").encode()).decode("utf-8", "replace")
    except GitSilentError as error:
        raise GitError(str(error)) from None


def hooks_directory() -> Path:
    """Return the directory of git hooks: `core.hooksPath`, or the repository's own."""
    return Path(git("rev-parse", "--git-path", "hooks", sees_hooks=True).strip()).absolute()


def is_private(directory: Path) -> bool:
    """Return whether a directory belongs to this clone only and is never committed."""
    common = Path(git("rev-parse", "--git-common-dir").strip()).resolve()
    return directory.resolve().is_relative_to(common)


def fallback_program(hooks: Path) -> str | None:
    """Return where `batonpass` is if it is not on the PATH; None if a hook must not say so."""
    program = Path(sys.executable).with_name("batonpass")
    # A committed directory of hooks must not contain a path of this machine.
    return str(program) if program.exists() and is_private(hooks) else None


def is_ignored(path: Path) -> bool:
    """Return whether git ignores a file; outside of a repository every file is ignored."""
    try:
        git("-C", str(path.parent), "check-ignore", "--quiet", "--", str(path))
    except GitError:
        return not _is_in_repository(path.parent)
    return True


def _is_in_repository(directory: Path) -> bool:
    try:
        return git("-C", str(directory), "rev-parse", "--is-inside-work-tree").strip() == "true"
    except GitError:
        return False


def read_staged() -> Staged:
    """Return the staged files, in a hook of the commit. Raises `GitError`."""
    parents = _parents()
    files = dict(islice(_differing(parents[0] if parents else _no_tree()), _MOST_FILES))
    for other in parents[1:]:
        # Changes of a merged branch were committed there: the merge itself made only what neither side has.
        theirs = {path for path, _ in _differing(other)}
        files = {path: objects for path, objects in files.items() if path in theirs}
    return Staged(
        root=Path(git("rev-parse", "--show-toplevel").removesuffix("\n")),
        since=_committed_at(parents[0]) if parents else None,
        files=files,
    )


def _differing(tree: str) -> Iterator[tuple[str, tuple[str, str]]]:
    fields = git("diff-index", "--cached", "--no-renames", "--no-abbrev", "-r", "-z", tree).split("\0")
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old, new, _ = facts.removeprefix(":").split(" ")
        if _SUBMODULE not in {old_mode, mode}:
            yield path, (old, new)


def _parents() -> list[str]:
    """Return the parents of the commit that is being made."""
    try:
        facts = git(
            "-c", "log.showSignature=false", "log", "-1", "--date=raw", "--format=%H%x00%P%x00%an%x00%ae%x00%ad"
        )
    except GitError:
        return []  # the first commit
    head, before, *author, date = facts.removesuffix("\n").split("\0")
    # Git does not tell a hook that a commit is amended. It does pass the author and the author's time, and an amended
    # commit has those of the commit that it replaces.
    if [*author, f"@{date}"] == [os.environ.get(f"GIT_AUTHOR_{name}") for name in ("NAME", "EMAIL", "DATE")]:
        return before.split()
    merged = Path(git("rev-parse", "--git-path", "MERGE_HEAD").removesuffix("\n"))
    return [head, *(merged.read_text(encoding="ascii").split() if merged.exists() else ())]


def _committed_at(commit: str) -> datetime:
    seconds = git("-c", "log.showSignature=false", "log", "-1", "--format=%ct", commit)
    return datetime.fromtimestamp(int(seconds), UTC)


def _no_tree() -> str:
    return git("hash-object", "-t", "tree", "--stdin", text="").strip()


def find_trailers() -> list[str]:
    """Return the seals in commits, on every branch and every fetched remote."""
    # The remote is the witness, so its commits count even if the local branch was rewritten.
    printed = git("log", "--all", f"--format=%(trailers:key={TRAILER},valueonly,unfold)")
    return list(dict.fromkeys(line for line in printed.splitlines() if line))


def find_seals(ledger: LedgerId) -> Seals:
    """Return the seals of a ledger in commits.

    Raises `GitError` if no commit has one, and `SealError` if all are of other ledgers, as if the ledger had been
    replaced.
    """
    notes, foreign, unreadable = [], 0, 0
    for trailer in find_trailers():
        try:
            note = from_trailer(trailer)
            origin = parse_note(note).checkpoint.origin
        except InvalidValueError:
            unreadable += 1
            continue
        if origin == origin_of(ledger):
            notes.append(note)
        else:
            foreign += 1
    if foreign and not notes:
        raise SealError(
            f"the commits here have {foreign} seals and none is of {ledger}: "
            "the ledger was replaced, or belongs to another repository",
            field="origin",
        )
    if not notes:
        raise GitError(f"no commit here has a {TRAILER} trailer; run `batonpass git install` and commit")
    return Seals(notes=tuple(notes), foreign=foreign, unreadable=unreadable)
