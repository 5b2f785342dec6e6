"""The history of one file, from git, as far back as something was recorded."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import FileChange, digest_of, lines_of
from batonpass.attribution.changes.line_diff import match_lines
from batonpass.attribution.git.file_git import GitSilentError, Logged, Repository, blob_name, committed_at
from batonpass.attribution.git.git_history import Checkout, Commit, History, Revision
from batonpass.attribution.git.head_log import Move, read_moves
from batonpass.model.base.ids import Digest

_MOST_REVISIONS: Final = 2_000
_MOST_BYTES: Final = 128 * 1024 * 1024  # of all revisions, if they are as large as the file is now
_MOST_MOVES: Final = 1_000
_BEFORE: Final = timedelta(days=1)  # clocks of several machines write into one repository


def read_names(repository: Repository, path: str, data: bytes, wanted: range | None = None) -> History:
    """Return what a file was called, and the commits that brought all or some of its lines."""
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
    """Return what git knows about a file that has these bytes now; what it cannot tell is in the notes.

    What is known of it already is not asked for again.
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


def _read_names(repository: Repository, path: str, data: bytes, wanted: range | None) -> History:
    head, blob = repository.head_with(path)
    if head is None:
        return History(paths=(path,), notes=("nothing is committed yet",))
    paths = tuple(dict.fromkeys((path, *repository.renames(path, since=None))))
    blamed, notes = _blame(repository, (head, blob), path, data, wanted)
    if blob is None:
        notes = (f"the file is not committed {'under this name' if len(paths) > 1 else 'yet'}",)
    return History(paths=paths, checked_out=head, blamed=blamed, notes=notes)


def _read(repository: Repository, known: History, data: bytes, *, since: datetime) -> History:
    paths, notes = known.paths, known.notes
    most = min(_MOST_REVISIONS, max(_MOST_BYTES // (len(data) + 1), 1))
    logged = repository.log(paths, since=since, most=most)
    if len(logged) == most:
        notes += (f"git's history is read no further than {most:,} commits back",)
    aside = repository.log_aside(paths, since=since, most=max(most - len(logged), 0))
    moves = read_moves(repository.root, since=since)[-_MOST_MOVES:]
    revisions, lines, checkouts = _revisions(repository, (logged, aside), moves, paths, known.checked_out or "")
    return replace(
        known,
        revisions=revisions,
        lines=lines,
        checkouts=checkouts,
        paths=paths,
        # Parents come first, and everything logged leads to the head: the last made the file what it is there.
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
    """Return what commits on the way to the head and aside have made of a file, its texts, and what was there when."""
    logged, aside = commits
    listed = {one.commit.id: None for one in (*logged, *aside)}
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
        if (there := find(one.commit.id)) is None:
            return None
        return Revision(
            commit=one.commit.id,
            at=one.commit.at,
            path=there[0],
            digest=there[1],
            parents=one.parents,
            runs=one.runs,
            author=one.commit.author,
            authored_at=one.authored_at,
            subject=one.subject,
            made_from=one.made_from,
            reverts=one.reverts,
            aside=is_aside,
        )

    older = (
        revision(Logged(commit=Commit(id=name, author="", at=at), parents=(), runs=(), authored_at=at))
        for name, at in sorted(moments.items())
    )
    found = (*older, *(revision(one, is_aside=True) for one in aside), *(revision(one) for one in logged))
    checkouts = [
        Checkout(at=move.at, commit=move.commit, digest=there[1], is_back=move.is_back)
        for move in moves
        if (there := find(move.commit)) is not None
    ]
    return [one for one in found if one is not None], dict(texts.values()), checkouts


def _blame(
    repository: Repository, committed: tuple[str, str | None], path: str, data: bytes, wanted: range | None
) -> tuple[list[Commit | None], tuple[str, ...]]:
    """Return which commits brought these lines, as far as they are wanted and committed as they are."""
    head, blob = committed
    lines = lines_of(data.decode("utf-8", "surrogateescape"))
    blamed: list[Commit | None] = [None] * len(lines)
    if blob is None or not lines:
        return blamed, ()
    places = range(len(lines)) if wanted is None else range(wanted.start - 1, min(wanted.stop - 1, len(lines)))
    sources = {place: place for place in places}
    if blob != blob_name(data, blob):
        old = lines_of(next(iter(repository.contents([blob])))[1].decode("utf-8", "surrogateescape"))
        kept = {block.new + step: block.old + step for block in match_lines(old, lines) for step in range(block.size)}
        sources = {place: kept[place] for place in places if place in kept}
    if not sources:
        return blamed, ()
    # All of it costs little more than the way back to the first of them; a line or two is asked for alone.
    spans = [] if wanted is None else [(min(sources.values()) + 1, max(sources.values()) + 1)]
    origins = repository.blame(head, path, spans)
    for place, source in sources.items():
        blamed[place] = origins.get(source + 1)
    return blamed, ()
