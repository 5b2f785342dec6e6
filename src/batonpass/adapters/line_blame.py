"""Finds out who wrote a line: from the ledger, or from Claude Code's transcripts if there is no ledger."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, find_names, read_file
from batonpass.accounts.blame.file_changes import FilePlace, place_of
from batonpass.accounts.blame.hunk_blame import BlamedHunk, blame_hunks
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.commit_span import CommitSpan, find_commits, find_uncommitted
from batonpass.attribution.git.file_git import Repository
from batonpass.config import LEDGER, Settings, find_settings
from batonpass.errors import InvalidValueError, StoreUnavailableError
from batonpass.store.factory import MEMORY, SQLITE, open_store
from batonpass.store.port import LedgerStore, LedgerView

if TYPE_CHECKING:
    from batonpass.relay import Relay

Progress = Callable[[int, int], None]

# With more bytes of transcripts, the temporary ledger is a file.
_IN_MEMORY: Final = 16 * 1024 * 1024


class TranscriptLedger(Struct, frozen=True, kw_only=True):
    """A temporary ledger made from unsigned transcripts, for one answer."""

    relay: "Relay"
    project: Path
    found: int  # all sessions of the project
    read: int  # sessions that were read
    problems: int


def blame(
    path: str | os.PathLike[str], line: int | tuple[int, int] | None = None, *, relay: "Relay | None" = None
) -> Blame:
    """Return who wrote a line of a file, a range of lines, or all lines.

    The answer comes from this relay's ledger, else from the ledger of this directory. If there is none, it comes from
    Claude Code's transcripts, and `transcripts` is the number of sessions that were read. Raises `InvalidValueError` if
    the file or line does not exist, and `StoreUnavailableError` if there are neither a ledger nor transcripts.
    """
    first, last = line if isinstance(line, tuple) else (line, line)
    lines = None if first is None or last is None else Lines(first=first, last=last)
    if relay is not None:
        return blame_at(relay, Path(path), lines)
    settings = find_ledger(Path(path))
    if settings is None:
        with heard(Path(path)) as told:
            return replace(blame_at(told.relay, Path(path), lines), transcripts=told.read)
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
        return blame_file(view, asked_file(path), lines)


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


def blame_span(view: LedgerView, span: CommitSpan) -> Iterator[BlamedHunk]:
    """Yield the hunks of a diff with the authors of their added lines."""

    def blame_of(path: str) -> Blame | None:
        whole = span.repository.root / path
        if span.head is None:
            try:
                return blame_file(view, asked_file(whole))
            except InvalidValueError:
                return None  # too large, a broken link, or removed meanwhile: the rest of the diff still gets an answer
        data = span.read_file(path)
        place = FilePlace(root=span.repository.root, path=path, roots=tuple(_roots()))
        asked = AskedFile(place=place, data=data, environment=os.environ, at=span.head)
        return None if data is None else blame_file(view, asked)

    return blame_hunks(span.read(), blame_of)


def asked_file(path: Path) -> AskedFile:
    """Return a file as it is now. Raises `InvalidValueError` if it is not a file."""
    data = read_file(path)  # first, because it refuses invalid paths
    return AskedFile(place=place_of(path, roots=_roots()), data=data, environment=os.environ)


def find_ledger(path: Path | None, ledger: str | None = None) -> Settings | None:
    """Return the ledger for questions about a file: the named one, else the nearest from here, else from the file.

    None if none is named and none exists.
    """
    found = find_settings(ledger)
    if ledger or os.environ.get(LEDGER) or _is_there(found):
        return found
    beside = None if path is None else find_settings(directory=path.absolute().parent)
    return beside if beside is not None and _is_there(beside) else None


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


@contextmanager
def heard(path: Path | None, *, progress: Progress | None = None) -> Iterator[TranscriptLedger]:
    """Read the transcripts that may mention a file, or all of this project, into a temporary ledger.

    Raises `StoreUnavailableError` if there are none.
    """
    # These imports are slow, and not needed where there is a ledger.
    from batonpass.adapters.claude_code.importer.transcript_import import import_transcripts  # noqa: PLC0415 - as above
    from batonpass.adapters.claude_code.transcripts.transcript_places import find_transcripts, mentioning  # noqa: PLC0415 - as above
    from batonpass.relay import Relay, recording_of  # noqa: PLC0415 - as above

    project = Path.cwd().resolve() if path is None else project_of(path)
    found = list(find_transcripts(project))
    if not found:
        raise StoreUnavailableError(
            f"there is no ledger here, and Claude Code has kept no session of {project}; record something first"
        )
    wanted = found if path is None else list(filter(mentioning(find_names(asked_file(path)).paths), found))
    sessions = {one.session for one in wanted}

    with ExitStack() as stack:
        url, home = MEMORY, None
        if sum(sum(one.sizes.values()) for one in wanted) > _IN_MEMORY:
            from tempfile import TemporaryDirectory  # noqa: PLC0415 - rarely needed

            home = Path(stack.enter_context(TemporaryDirectory(prefix="batonpass-blame-")))
            url = f"{SQLITE}{home / 'ledger.db'}"
        relay = stack.enter_context(Relay.open(url, home=home))
        imported = import_transcripts(relay, project, only=lambda one: one.session in sessions, progress=progress)
        recording_of(relay)  # creates the ledger even if there was nothing to import, so that questions get an answer
        yield TranscriptLedger(
            relay=relay,
            project=project,
            found=len(found),
            read=imported.counts.sessions,
            problems=imported.counts.unread,
        )
