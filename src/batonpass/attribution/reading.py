"""The history of one file, from git, as far back as something was recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from batonpass.attribution.change import FileChange, digest_of, lines_of
from batonpass.attribution.diffing import match_lines
from batonpass.attribution.git import GitSilentError, Logged, Repository
from batonpass.attribution.history import Commit, History, Revision
from batonpass.model.ids import Digest

_MOST_REVISIONS: Final = 2_000
_MOST_BYTES: Final = 128 * 1024 * 1024  # of all revisions, if they are as large as the file is now
_BEFORE: Final = timedelta(days=1)  # clocks of several machines write into one repository


def read_history(
    repository: Repository, path: str, data: bytes, changes: Iterable[FileChange], *, names: Iterable[str] = ()
) -> History:
    """Return what git knows about a file that has these bytes now; what it cannot tell is in the notes."""
    times = [change.at for change in changes]
    try:
        return _read(repository, path, data, names=names, since=min(times) - _BEFORE if times else None)
    except GitSilentError as error:
        return History(paths=tuple(dict.fromkeys((path, *names))), notes=(str(error),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A file as the last commit has it, and when it was last changed by one."""

    data: bytes
    at: datetime


def find_committed(repository: Repository, path: str) -> Committed | None:
    """Return a file as it is committed; None if it is not, or git does not say."""
    try:
        head = repository.head()
        blobs = {} if head is None else repository.blobs([(head, path)])
        logged = repository.log([path], since=None, most=1) if blobs else []
        if not logged:
            return None
        return Committed(data=next(iter(repository.contents(blobs.values())))[1], at=logged[-1].commit.at)
    except GitSilentError:
        return None


def find_new_name(repository: Repository, path: str) -> str | None:
    """Return what a file is called that is not there under this name any more; None if git does not know."""
    seen = [path]
    try:
        while (new := repository.renamed_to(seen[-1])) is not None and new not in seen:
            seen.append(new)
            if (repository.root / new).exists():
                return new
    except GitSilentError:
        return None
    return None


def _read(repository: Repository, path: str, data: bytes, *, names: Iterable[str], since: datetime | None) -> History:
    head = repository.head()
    if head is None:
        return History(paths=(path,), notes=("nothing is committed yet",))
    paths = tuple(dict.fromkeys((path, *repository.renames(path, since=since), *names)))
    blamed, notes = _blame(repository, head, path, data, named=len(paths) > 1)
    if since is None:
        return History(paths=paths, blamed=blamed, notes=notes)
    most = min(_MOST_REVISIONS, max(_MOST_BYTES // (len(data) + 1), 1))
    logged = repository.log(paths, since=since, most=most)
    if len(logged) == most:
        notes += (f"git's history is read no further than {most:,} commits back",)
    revisions, lines = _revisions(repository, logged, paths, head)
    return History(
        revisions=revisions,
        lines=lines,
        paths=paths,
        # Parents come first, and everything logged leads to the head: the last made the file what it is there.
        head=revisions[-1].commit if revisions else None,
        blamed=blamed,
        notes=notes,
    )


def _revisions(
    repository: Repository, logged: Sequence[Logged], paths: Sequence[str], head: str
) -> tuple[list[Revision], dict[Digest, Sequence[str]]]:
    listed = {one.commit.id for one in logged}
    outside = {parent for one in logged for parent in one.parents if parent not in listed} if logged else {head}
    blobs = repository.blobs((commit, path) for commit in (*outside, *listed) for path in paths)
    texts: dict[str, tuple[Digest, Sequence[str]]] = {
        name: (digest_of(data), lines_of(data.decode("utf-8", "surrogateescape")))
        for name, data in repository.contents(blobs.values())
        if b"\0" not in data
    }

    def revision(commit: Commit, parents: tuple[str, ...], runs: tuple[str, ...]) -> Revision | None:
        for path in paths:
            if (blob := blobs.get((commit.id, path))) is not None and blob in texts:
                digest = texts[blob][0]
                return Revision(commit=commit.id, at=commit.at, path=path, digest=digest, parents=parents, runs=runs)
        return None

    moments = repository.moments(outside)
    older = (revision(Commit(id=name, author="", at=at), (), ()) for name, at in sorted(moments.items()))
    newer = (revision(one.commit, one.parents, one.runs) for one in logged)
    return [one for one in (*older, *newer) if one is not None], dict(texts.values())


def _blame(
    repository: Repository, head: str, path: str, data: bytes, *, named: bool
) -> tuple[list[Commit | None], tuple[str, ...]]:
    lines = lines_of(data.decode("utf-8", "surrogateescape"))
    blobs = repository.blobs([(head, path)])
    if not blobs:
        return [None] * len(lines), (f"the file is not committed {'under this name' if named else 'yet'}",)
    committed = lines_of(next(iter(repository.contents(blobs.values())))[1].decode("utf-8", "surrogateescape"))
    origins = repository.blame(head, path)
    blamed: list[Commit | None] = [None] * len(lines)
    if len(origins) == len(committed):
        for block in match_lines(committed, lines):
            blamed[block.new : block.new + block.size] = origins[block.old : block.old + block.size]
    return blamed, ()
