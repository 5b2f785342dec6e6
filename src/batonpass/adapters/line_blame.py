"""Finds out who wrote a line: from the ledger, or from the sessions that agents keep if there is no ledger."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, find_names, read_file
from batonpass.accounts.blame.file_changes import FilePlace, place_of
from batonpass.accounts.blame.hearsay_blame import HearsayTellers
from batonpass.accounts.blame.hunk_blame import BlamedHunk, blame_hunks
from batonpass.accounts.blame.note_blame import NoteSource, blank_blame
from batonpass.accounts.blamed_lines.porcelain import porcelain
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.commit_span import CommitSpan, find_commits, find_uncommitted
from batonpass.attribution.git.file_git import EMPTY_TREE, Repository
from batonpass.attribution.git.file_history import FileOrigins, read_origins
from batonpass.attribution.git.git_history import History
from batonpass.attribution.git.git_process import GitSilentError
from batonpass.config import LEDGER, Settings, find_settings, require_own_ledger
from batonpass.errors import InvalidValueError, StoreError, StoreUnavailableError
from batonpass.notes.foreign.foreign_claims import ForeignClaims
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.store.factory import MEMORY, SQLITE, open_store
from batonpass.store.port import LedgerStore, LedgerView

if TYPE_CHECKING:
    from batonpass.relay import Relay

Progress = Callable[[int, int], None]

# With more bytes of transcripts, the temporary ledger is a file.
_TRIES: Final = 3  # while somebody writes; then the file is read as one that is written
_MOST_COMMITS: Final = 5_000
_IN_MEMORY: Final = 16 * 1024 * 1024


class HeardAgent(Struct, frozen=True, kw_only=True):
    """How many sessions of a project an agent keeps, and how many of them were read."""

    title: str
    found: int
    read: int


class TranscriptLedger(Struct, frozen=True, kw_only=True):
    """A temporary ledger made from unsigned transcripts, for one answer."""

    relay: "Relay"
    project: Path
    agents: tuple[HeardAgent, ...]
    problems: int

    @property
    def read(self) -> int:
        """Return how many sessions were read."""
        return sum(one.read for one in self.agents)


def blame(
    path: str | os.PathLike[str], line: int | tuple[int, int] | None = None, *, relay: "Relay | None" = None
) -> Blame:
    """Return who wrote a line of a file, a range of lines, or all lines.

    The answer comes from this relay's ledger, else from the ledger of this directory; git notes explain lines that it
    does not, and claims of other tools the rest. Without a ledger the answer comes from notes and claims alone. If
    notes leave lines open, it comes from the sessions that coding agents keep, and `transcripts` is the number of
    sessions that were read. Raises `InvalidValueError` if the file or line does not exist, `ForeignLedgerError` if the
    ledger of this directory is committed in a repository, and `StoreUnavailableError` if there is none of these.
    """
    first, last = line if isinstance(line, tuple) else (line, line)
    lines = None if first is None or last is None else Lines(first=first, last=last)
    if relay is not None:
        return blame_at(relay, Path(path), lines)
    settings = own_ledger(Path(path))
    if settings is None:
        if (told := blame_by_git(Path(path), lines)) is not None:
            return told
        with heard(Path(path)) as read:
            return replace(blame_at(read.relay, Path(path), lines), transcripts=read.read)
    if settings == find_settings():
        from batonpass.default import default_relay  # noqa: PLC0415 - only programs have a default relay

        return blame_at(default_relay(create=False), Path(path), lines)
    with closing(open_store(settings.ledger, create=False)) as beside:
        return blame_in(beside, Path(path), lines)


def blame_at(relay: "Relay", path: Path, lines: Lines | None = None) -> Blame:
    """Return who wrote lines of a file, from the ledger of a relay."""
    return blame_in(relay.store, path, lines)


def blame_in(store: LedgerStore, path: Path, lines: Lines | None = None) -> Blame:
    """Return who wrote lines of a file, from a store. Reading needs no keys."""
    with store.view() as view:
        return _with_notes(view, asked_file(path), lines)


def _with_notes(view: LedgerView, asked: AskedFile, lines: Lines | None = None) -> Blame:
    names = find_names(asked, lines)
    return GitSources().fill(blame_file(view, asked, lines, names=names), asked, names)


def blame_by_git(path: Path, lines: Lines | None = None) -> Blame | None:
    """Return who wrote lines of a file, from notes and other tools' claims; None if sessions should be read as well.

    Sessions say more than other tools do. Where there are none, and nothing else either, it is None as well.
    """
    asked = asked_file(path)
    sources = GitSources()
    has_sessions = has_transcripts(path)
    has_notes = sources.has_notes(asked)
    if asked.data is None or (has_sessions and not has_notes):
        return None
    names = find_names(asked, lines)
    found = sources.fill(blank_blame(asked, lines, names), asked, names)
    if has_sessions:
        return found if found.is_complete else None
    return found if has_notes or found.is_explained else None


class GitSources:
    """The sources in repositories besides commits: notes, and claims of other tools; opened once for one question."""

    def __init__(self) -> None:
        self._found: dict[tuple[Path, str | None], NoteSource | None] = {}
        self._heard: dict[tuple[Path, str | None], HearsayTellers | None] = {}

    def has_notes(self, asked: AskedFile) -> bool:
        """Return whether there are notes in a file's repository."""
        return self._source(asked) is not None

    def fill(self, blame: Blame, asked: AskedFile, names: History) -> Blame:
        """Return an answer in which notes explain lines that the ledger does not, with claims of other tools."""
        if all(line.known is not HowKnown.UNEXPLAINED for line in blame.lines):
            return blame
        source = self._source(asked)
        noted = blame if source is None else source.fill(blame, asked, names)
        tellers = self._tellers(asked)
        return noted if tellers is None else tellers.fill(noted, names)

    def _tellers(self, asked: AskedFile) -> HearsayTellers | None:
        key = asked.place.root, asked.at
        if key not in self._heard:
            self._heard[key] = HearsayTellers.find(asked)
        return self._heard[key]

    def _source(self, asked: AskedFile) -> NoteSource | None:
        key = asked.place.root, asked.at
        if key not in self._found:
            self._found[key] = NoteSource.find(asked)
        return self._found[key]


def ledger_beside(path: Path, ledger: str | None = None) -> Settings | None:
    """Return the ledger nearest to a file, from any current directory; None if none is named and none exists."""
    if ledger or os.environ.get(LEDGER):
        return find_settings(ledger)
    found = find_settings(directory=path.absolute().parent)
    return found if _is_there(found) else None


def blame_beside(path: Path, ledger: str | None = None) -> Blame:
    """Return who wrote a file, from the ledger nearest to it, else from sessions; for programs that serve many places.

    Raises the errors of `blame`.
    """
    settings = ledger_beside(path, ledger)
    if settings is None:
        if (told := blame_by_git(path)) is not None:
            return told
        with heard(path) as read:
            return replace(blame_in(read.relay.store, path), transcripts=read.read)
    require_own_ledger(settings)
    roots = () if settings.home is None else (settings.home.parent,)
    for _ in range(_TRIES):
        before = _stamp(settings)
        try:
            with closing(open_store(settings.ledger, reads_only=True)) as store, store.view() as view:
                found = _with_notes(view, asked_file(path, roots=roots))
        except StoreError:
            if _stamp(settings) == before:
                raise
            continue
        # An answer without a log holds only if nobody has written the file meanwhile.
        if _stamp(settings) == before:
            return found
    with closing(open_store(settings.ledger, create=False)) as store, store.view() as view:
        return _with_notes(view, asked_file(path, roots=roots))


def _stamp(settings: Settings) -> tuple[int, int] | None:
    """Return a stamp that differs after a SQLite file was written; None for other stores, which need none."""
    if not settings.ledger.startswith(SQLITE):
        return None
    try:
        found = Path(settings.ledger.removeprefix(SQLITE)).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@contextmanager
def nothing_recorded() -> Iterator[LedgerStore]:
    """Open an empty ledger, so that git and its notes alone answer."""
    from batonpass.relay import Relay, recording_of  # noqa: PLC0415 - slow, and only where nothing is recorded

    with Relay.open(MEMORY) as relay:
        recording_of(relay)
        yield relay.store


def porcelain_in(store: LedgerStore, path: Path, lines: Lines | None, *, every: bool) -> list[bytes]:
    """Return who wrote lines of a file, in the format of `git blame --porcelain`; with `every`, `--line-porcelain`."""
    asked = asked_file(path)
    data, repository = asked.data or b"", asked.repository
    with store.view() as view:
        blame = _with_notes(view, asked, lines)
    wanted = None if lines is None else range(lines.first, lines.last + 1)
    nowhere = FileOrigins(head=None, is_tracked=False, lines=[None] * blame.total)
    origins = nowhere if repository is None else read_origins(repository, asked.place.path, data, wanted)
    return list(porcelain(blame, origins, data, now=datetime.now().astimezone(), every=every))


def find_span(where: str) -> CommitSpan | None:
    """Return the diff that a user names: a directory with its uncommitted changes, a commit, or `BASE..HEAD`.

    None if it is none of these. Raises `NotFoundError` if one end of a diff is not a commit.
    """
    path = Path(where)
    is_directory = path.is_dir()
    root = find_repository((path if is_directory else Path.cwd()).resolve())
    if root is None or (path.exists() and not is_directory):
        return None
    repository = Repository(root, os.environ)
    if not is_directory:
        return find_commits(repository, where)
    below = path.resolve().relative_to(root).as_posix()
    return find_uncommitted(repository, "" if below == "." else below)


def blame_span(view: LedgerView | None, span: CommitSpan) -> Iterator[BlamedHunk]:
    """Yield the hunks of a diff with the authors of their added lines; without a ledger, as notes tell."""
    sources = GitSources()

    def told(asked: AskedFile) -> Blame:
        names = find_names(asked)
        found = blank_blame(asked, None, names) if view is None else blame_file(view, asked, names=names)
        return sources.fill(found, asked, names)

    def blame_of(path: str) -> Blame | None:
        whole = span.repository.root / path
        if span.head is None:
            try:
                return told(asked_file(whole))
            except InvalidValueError:
                return None  # too large, a broken link, or removed meanwhile: the rest of the diff still gets an answer
        data = span.read_file(path)
        place = FilePlace(root=span.repository.root, path=path, roots=tuple(_roots()))
        asked = AskedFile(place=place, data=data, environment=os.environ, at=span.head)
        return None if data is None else told(asked)

    return blame_hunks(span.read(), blame_of)


def asked_file(path: Path, *, roots: Sequence[Path] | None = None) -> AskedFile:
    """Return a file as it is now. Raises `InvalidValueError` if it is not a file.

    Recorded paths may be relative to the roots; by default to the directory of the ledger and the current one.
    """
    data = read_file(path)  # first, because it refuses invalid paths
    place = place_of(path, roots=_roots() if roots is None else roots)
    return AskedFile(place=place, data=data, environment=os.environ)


def find_ledger(path: Path | None, ledger: str | None = None) -> Settings | None:
    """Return the ledger for questions about a file: the named one, else the nearest from here, else from the file.

    None if none is named and none exists.
    """
    found = find_settings(ledger)
    if ledger or os.environ.get(LEDGER) or _is_there(found):
        return found
    beside = None if path is None else find_settings(directory=path.absolute().parent)
    return beside if beside is not None and _is_there(beside) else None


def own_ledger(path: Path | None, ledger: str | None = None) -> Settings | None:
    """Return the ledger to be asked, as `find_ledger` does. Raises `ForeignLedgerError` for one that is committed.

    Its receipts verify against keys that came with it, so the author of the commits decides everything that it says.
    """
    found = find_ledger(path, ledger)
    if found is not None and _is_there(found):
        require_own_ledger(found)
    return found


def _is_there(settings: Settings) -> bool:
    return not settings.ledger.startswith(SQLITE) or Path(settings.ledger.removeprefix(SQLITE)).exists()


def _roots() -> Iterator[Path]:
    """Yield the directories that recorded paths may be relative to: the ledger's, and the current one."""
    home = find_settings().home
    if home is not None:
        yield home.parent
    yield Path.cwd()


def project_of(path: Path) -> Path:
    """Return the directory whose sessions may have changed a file."""
    parent = path.absolute().resolve().parent
    here = Path.cwd().resolve()
    return find_repository(parent) or (here if parent.is_relative_to(here) else parent)


def is_told_by_git(span: CommitSpan) -> bool:
    """Return whether a repository has notes, or something of other tools about the commits of a diff."""
    repository = NoteRepository(span.repository.root, os.environ)
    try:
        if repository.note_refs(NoteKind.LINES):
            return True
        head = span.head or "HEAD"
        begins = span.base in EMPTY_TREE.values()
        commits = repository.commits(head if begins else f"{span.base}..{head}", most=_MOST_COMMITS)
        return ForeignClaims(repository).knows(commits)
    except GitSilentError:
        return False


def has_transcripts(path: Path) -> bool:
    """Return whether a coding agent has kept sessions that may be about a file."""
    from batonpass.adapters.session_readers import find_kept  # noqa: PLC0415 - as below

    return next(find_kept(project_of(path)), None) is not None


@contextmanager
def heard(path: Path | None, *, progress: Progress | None = None) -> Iterator[TranscriptLedger]:
    """Read the sessions of all agents that may mention a file, or all of this project, into a temporary ledger.

    Raises `StoreUnavailableError` if there are none.
    """
    # These imports are slow, and not needed where there is a ledger.
    from batonpass.adapters.importer.session_import import import_sessions  # noqa: PLC0415 - as above
    from batonpass.adapters.session_readers import READERS  # noqa: PLC0415 - as above
    from batonpass.relay import Relay, recording_of  # noqa: PLC0415 - as above

    project = Path.cwd().resolve() if path is None else project_of(path)
    looked = ((reader, list(reader.find(project))) for reader in (kind() for kind in READERS.values()))
    kept = [(reader, found) for reader, found in looked if found]
    if not kept:
        raise StoreUnavailableError(
            f"there is no ledger here, and no coding agent has kept a session of {project}; record something first, "
            "or in a clone fetch what others recorded with `batonpass git sync`"
        )
    names = None if path is None else find_names(asked_file(path)).paths
    wanted = [found if names is None else list(filter(reader.mentioning(names), found)) for reader, found in kept]
    total = sum(one.bytes for sessions in wanted for one in sessions)
    with ExitStack() as stack:
        url, home = MEMORY, None
        if total > _IN_MEMORY:
            from tempfile import TemporaryDirectory  # noqa: PLC0415 - rarely needed

            home = Path(stack.enter_context(TemporaryDirectory(prefix="batonpass-blame-")))
            url = f"{SQLITE}{home / 'ledger.db'}"
        relay = stack.enter_context(Relay.open(url, home=home))
        agents: list[HeardAgent] = []
        before, problems = 0, 0
        for (reader, found), sessions in zip(kept, wanted, strict=True):
            told = None if progress is None else _shifted(progress, before, total)
            imported = import_sessions(relay, project, reader, found=sessions, progress=told)
            agents.append(HeardAgent(title=reader.title, found=len(found), read=imported.counts.sessions))
            before += sum(one.bytes for one in sessions)
            problems += imported.counts.unread
        recording_of(relay)  # creates the ledger even if there was nothing to import, so that questions get an answer
        yield TranscriptLedger(relay=relay, project=project, agents=tuple(agents), problems=problems)


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)
