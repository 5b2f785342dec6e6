"""A repository, or a directory, that a server may show on its page."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, find_names, read_file
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.accounts.blame.known_files import KnownFiles
from batonpass.accounts.blame.pasted_diff import blame_patch
from batonpass.adapters.line_blame import GitSources
from batonpass.attribution.changes.change import lines_of
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.git_process import GitSilentError
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.checks import shorten
from batonpass.server.page.shown_files import EarlierFile, FileEntry, ShownFile
from batonpass.store.port import LedgerView

MOST_CHANGES: Final = 99
_MOST_ENTRIES: Final = 1_000
_MOST_UNTRACKED: Final = 300  # entries of a directory that git does not know, of which the ledger is asked
_WHOLE: Final = 16_384  # lines of the longest file in which a pasted diff is looked for


class ShownRepository:
    """The files of one directory and its repository that git or the ledger knows. Safe to use from many threads."""

    def __init__(self, directory: Path, home: Path | None) -> None:
        here = directory.resolve()
        self.root = find_repository(here) or here
        self.name = self.root.name or str(self.root)
        self._home = home
        self._known = KnownFiles(root=self.root, home=home, environment=os.environ)

    def is_directory(self, path: str) -> bool:
        """Return whether a path is a directory. Raises `InvalidValueError` for a path outside."""
        return self._known.require_within(self.root / path).is_dir()

    def entries(self, view: LedgerView, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory: directories first, then files with the number of recorded changes."""
        below = self._known.require_within(self.root / path).relative_to(self.root).as_posix()
        start = "" if below == "." else f"{below}/"
        tracked = self._tracked(start)
        directories = {name.partition("/")[0] for name in tracked if "/" in name}
        files = {name for name in tracked if "/" not in name}
        for entry in self._untracked(start, directories | files):
            if entry.is_dir(follow_symlinks=False) and not tracked and not entry.name.startswith("."):
                directories.add(entry.name)  # without git, nobody knows what is in it
            elif entry.is_file(follow_symlinks=False) and self._known.count_changes(view, start + entry.name):
                files.add(entry.name)
        found = [FileEntry(name=one, path=start + one, is_directory=True) for one in sorted(directories)]
        return [*found, *(self._entry(view, start, one) for one in sorted(files))][:_MOST_ENTRIES]

    def _entry(self, view: LedgerView, start: str, name: str) -> FileEntry:
        changes = self._known.count_changes(view, start + name, MOST_CHANGES)
        return FileEntry(name=name, path=start + name, is_directory=False, changes=changes)

    def _tracked(self, start: str) -> list[str]:
        """Return the paths below a directory that git tracks, from there."""
        if find_repository(self.root) is None:
            return []
        try:
            found = Repository(self.root, os.environ).tracked(start.rstrip("/"))
        except GitSilentError as error:
            raise InvalidValueError("path", f"cannot be read: {error}") from None
        return [path.removeprefix(start) for path in found if path.startswith(start)]

    def _untracked(self, start: str, known: set[str]) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / start) as here:
                others = [entry for entry in here if entry.name not in known and self._is_shown(Path(entry.path))]
        except OSError:
            return
        yield from others[:_MOST_UNTRACKED]

    def _is_shown(self, path: Path) -> bool:
        return path.name != ".git" and (self._home is None or path != self._home.resolve())

    def blame(self, view: LedgerView, path: str, first: int, most: int, at: str | None) -> ShownFile:
        """Return lines of a file with who wrote them; of a file without lines, who made it."""
        asked = self._asked(view, path, at)
        total = 0 if not asked.data or b"\0" in asked.data else len(_lines(asked.data))
        lines = None if not total else Lines(first=min(first, total), last=min(first + most - 1, total))
        names = find_names(asked, lines)
        told = GitSources().fill(blame_file(view, asked, lines, names=names), asked, names)
        return ShownFile(path=asked.place.path, at=asked.at, data=asked.data, blame=told, names=names)

    def _asked(self, view: LedgerView, path: str, at: str | None) -> AskedFile:
        roots = (self.root,) if self._home is None else (self._home.resolve().parent, self.root)
        if at is None:
            name = self._known.require_known(
                self.root / path, is_recorded=lambda one: bool(self._known.count_changes(view, one))
            )
            data = read_file(self.root / name)
            return AskedFile(place=FilePlace(root=self.root, path=name, roots=roots), data=data, environment=os.environ)
        name, repository = self._known.require_name(path), Repository(self.root, os.environ)
        commit = None if find_repository(self.root) is None else repository.commit_of(at)
        if commit is None:
            raise NotFoundError("commit", shorten(at), where="repository")
        data = self._read(repository, commit, name)
        if data is None:
            raise InvalidValueError("path", f"there is no {shorten(name)} in commit {commit[:12]}")
        place = FilePlace(root=self.root, path=name, roots=roots)
        return AskedFile(place=place, data=data, environment=os.environ, at=commit)

    def _read(self, repository: Repository, commit: str, name: str) -> bytes | None:
        try:
            blobs = repository.blobs([(commit, name)])
            return next((data for _, data in repository.contents(blobs.values())), None)
        except GitSilentError as error:
            raise InvalidValueError("path", f"cannot be read: {error}") from None

    def before(self, file: ShownFile, number: int) -> EarlierFile | None:
        """Return the file in the commit before the one that brought a line; of a new line, in the latest commit."""
        if find_repository(self.root) is None:
            return None
        repository = Repository(self.root, os.environ)
        line = next((one for one in file.blame.lines if one.number == number), None)
        origin = file.names.origins.get(number)
        committed = None if line is None else line.commit
        try:
            at = repository.commit_of(f"{committed.id}^" if committed is not None else file.at or "HEAD")
            if at is None:
                return None
            named = dict.fromkeys(([origin.path] if origin is not None else []) + [file.path, *file.names.paths])
            there = repository.blobs([(at, name) for name in named])
        except GitSilentError:
            return None
        found = next((name for name in named if (at, name) in there), None)
        where = number if origin is None else origin.line
        return None if found is None else EarlierFile(path=found, at=at, line=where)

    def hunks(self, view: LedgerView, patch: str) -> Sequence[BlamedHunk]:
        """Return the hunks of a pasted diff with their authors, as the files are now."""

        def blame_of(path: str) -> Blame | None:
            try:
                return self.blame(view, path, 1, _WHOLE, None).blame
            except InvalidValueError:
                return None  # not of this project, or not to be read: the rest of the diff still gets an answer

        return [*blame_patch(patch, blame_of)]


def _lines(data: bytes) -> list[str]:
    return lines_of(data.decode("utf-8", "surrogateescape"))
