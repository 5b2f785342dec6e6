"""The history of one file from git, as far back as there are recorded changes."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from batonpass.attribution.changes.change import FileChange, digest_of, lines_of
from batonpass.attribution.changes.line_diff import match_lines
from batonpass.attribution.git.file_git import (
    CommitLine,
    GitSilentError,
    Repository,
    blob_name,
    committed_at,
    line_origin,
)
from batonpass.attribution.git.git_history import Checkout, History, Logged, Revision
from batonpass.attribution.git.head_log import Move, read_moves
from batonpass.model.base.ids import Digest

_MOST_REVISIONS: Final = 2_000
_MOST_BYTES: Final = 128 * 1024 * 1024  # of all revisions, assuming the present size of the file
_MOST_MOVES: Final = 1_000
_BEFORE: Final = timedelta(days=1)  # tolerance for the clocks of different machines


def read_names(repository: Repository, path: str, data: bytes, wanted: range | None = None) -> History:
    """Return a file's names, and the commits that introduced all or some of its lines."""
    try:
        return _read_names(repository, path, data, wanted)
    except GitSilentError as error:
        return History(paths=(path,), notes=(str(error),))


def read_history(
    repository: Repository,
    path: str,
    data: bytes,
    changes: Iterable[FileChange],
    *,
    names: Iterable[str] = (),
    known: History | None = None,
) -> History:
    """Return the history of a file with these bytes; the notes list revisions that git could not read.

    Facts in `known` are not asked for again.
    """
    known = known or read_names(repository, path, data)
    paths = tuple(dict.fromkeys((path, *known.paths, *names)))
    times = [change.at for change in changes]
    if not times or known.checked_out is None:
        return replace(known, paths=paths)
    try:
        return _read(repository, replace(known, paths=paths), data, since=min(times) - _BEFORE)
    except GitSilentError as error:
        return History(paths=paths, notes=(str(error),))


class Committed(Struct, frozen=True, kw_only=True):
    """A file at the last commit, and when a commit last changed it."""

    data: bytes
    at: datetime


class FileOrigins(Struct, frozen=True, kw_only=True):
    """Where the lines of a file come from; None for a line that is in no commit."""

    head: str | None
    is_tracked: bool
    lines: list[CommitLine | None]


def find_committed(repository: Repository, path: str) -> Committed | None:
    """Return the committed version of a file; None if there is none, or git gives no answer."""
    try:
        head = repository.head()
        blobs = {} if head is None else repository.blobs([(head, path)])
        logged = repository.log([path], since=None, most=1) if blobs else []
        if not logged:
            return None
        return Committed(data=next(iter(repository.contents(blobs.values())))[1], at=logged[-1].at)
    except GitSilentError:
        return None


def find_new_name(repository: Repository, path: str) -> str | None:
    """Return the present name of a file that no longer exists under this name; None if git does not know."""
    seen = [path]
    try:
        while (new := repository.renamed_to(seen[-1])) is not None and new not in seen:
            seen.append(new)
            if (repository.root / new).exists():
                return new
    except GitSilentError:
        return None
    return None


def _read_names(repository: Repository, path: str, data: bytes, wanted: range | None) -> History:
    head, blob = repository.head_with(path)
    if head is None:
        return History(paths=(path,), notes=("the repository has no commit yet",))
    paths = tuple(dict.fromkeys((path, *repository.renames(path, since=None))))
    lines = [] if blob is None or not data else _origins(repository, (head, blob), path, data, wanted)
    origins = {number: line_origin(one, path) for number, one in enumerate(lines, 1) if one is not None}
    total = len(lines_of(data.decode("utf-8", "surrogateescape")))
    blamed = [origins[number].commit if number in origins else None for number in range(1, total + 1)]
    notes = () if blob else (f"the file is not committed {'under this name' if len(paths) > 1 else 'yet'}",)
    return History(paths=paths, checked_out=head, blamed=blamed, origins=origins, notes=notes)


def _read(repository: Repository, known: History, data: bytes, *, since: datetime) -> History:
    paths, notes = known.paths, known.notes
    most = min(_MOST_REVISIONS, max(_MOST_BYTES // (len(data) + 1), 1))
    logged = repository.log(paths, since=since, most=most)
    if len(logged) == most:
        notes += (f"git's history was read only {most:,} commits back",)
    aside = repository.log_aside(paths, since=since, most=max(most - len(logged), 0))
    moves = read_moves(repository.root, since=since)[-_MOST_MOVES:]
    revisions, lines, checkouts = _revisions(repository, (logged, aside), moves, paths, known.checked_out or "")
    return replace(
        known,
        revisions=revisions,
        lines=lines,
        checkouts=checkouts,
        paths=paths,
        # Parents come first and every logged commit leads to the head, so the last one made the present version.
        head=next((one.commit for one in reversed(revisions) if not one.aside), None),
        notes=notes,
    )


def _revisions(
    repository: Repository,
    commits: tuple[Sequence[Logged], Sequence[Logged]],
    moves: Sequence[Move],
    paths: Sequence[str],
    head: str,
) -> tuple[list[Revision], dict[Digest, Sequence[str]], list[Checkout]]:
    """Return the revisions of a file on the way to the head and aside, their texts, and the checkouts."""
    logged, aside = commits
    listed = {one.commit: None for one in (*logged, *aside)}
    outside = {parent: None for one in (*logged, *aside) for parent in one.parents if parent not in listed}
    if not logged:
        outside[head] = None
    passed = {move.commit: None for move in moves}
    blobs = repository.blobs((commit, path) for commit in {**outside, **listed, **passed} for path in paths)
    texts: dict[str, tuple[Digest, Sequence[str]]] = {}
    moments: dict[str, datetime] = {}
    for name, data in repository.contents((*outside, *blobs.values())):
        if name in outside:
            moments[name] = committed_at(data)
        elif b"\0" not in data:
            texts[name] = digest_of(data), lines_of(data.decode("utf-8", "surrogateescape"))

    def find(commit: str) -> tuple[str, Digest] | None:
        named = ((path, blobs.get((commit, path), "")) for path in paths)
        return next(((path, texts[blob][0]) for path, blob in named if blob in texts), None)

    def revision(one: Logged, *, is_aside: bool = False) -> Revision | None:
        there = find(one.commit)
        return there and Revision(path=there[0], digest=there[1], aside=is_aside, **asdict(one))

    older = (revision(Logged(commit=name, at=at, authored_at=at)) for name, at in sorted(moments.items()))
    found = (*older, *(revision(one, is_aside=True) for one in aside), *(revision(one) for one in logged))
    checkouts = [
        Checkout(at=move.at, commit=move.commit, digest=there[1], is_back=move.is_back)
        for move in moves
        if (there := find(move.commit)) is not None
    ]
    return [one for one in found if one is not None], dict(texts.values()), checkouts


def read_origins(repository: Repository, path: str, data: bytes, wanted: range | None = None) -> FileOrigins:
    """Return where git says that the lines of a file come from; no line has an origin if git gives no answer."""
    count = len(lines_of(data.decode("utf-8", "surrogateescape")))
    try:
        head, blob = repository.head_with(path)
        if head is None or blob is None:
            return FileOrigins(head=head, is_tracked=False, lines=[None] * count)
        return FileOrigins(head=head, is_tracked=True, lines=_origins(repository, (head, blob), path, data, wanted))
    except GitSilentError:
        return FileOrigins(head=None, is_tracked=False, lines=[None] * count)


def _origins(
    repository: Repository, committed: tuple[str, str], path: str, data: bytes, wanted: range | None
) -> list[CommitLine | None]:
    """Return the origins of these lines, for lines that are wanted and committed unchanged."""
    head, blob = committed
    lines = lines_of(data.decode("utf-8", "surrogateescape"))
    places = range(len(lines)) if wanted is None else range(wanted.start - 1, min(wanted.stop - 1, len(lines)))
    sources = {place: place for place in places}
    if blob != blob_name(data, blob):
        old = lines_of(next(iter(repository.contents([blob])))[1].decode("utf-8", "surrogateescape"))
        kept = {block.new + step: block.old + step for block in match_lines(old, lines) for step in range(block.size)}
        sources = {place: kept[place] for place in places if place in kept}
    if not sources:
        return [None] * len(lines)
    # Asking for one span is hardly more expensive than for single lines, and a line or two is asked for alone.
    spans = [] if wanted is None else [(min(sources.values()) + 1, max(sources.values()) + 1)]
    origins = repository.origins(head, path, spans)
    return [origins.get(sources[place] + 1) if place in sources else None for place in range(len(lines))]
