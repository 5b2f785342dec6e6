"""Who wrote a line: from the ledger, or, where there is none, from what other programs keep of their work."""

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
    from batonpass.adapters.claude_code.transcripts.transcript_places import Transcript
    from batonpass.relay import Relay

Progress = Callable[[int, int], None]

# Beyond that, what was read is kept in a file until the answer is found.
_IN_MEMORY: Final = 16 * 1024 * 1024


class TranscriptLedger(Struct, frozen=True, kw_only=True):
    """A ledger that lasts for one answer, made from transcripts that nobody signed."""

    relay: "Relay"
    project: Path
    found: int  # sessions of the project
    read: int  # those that were read
    problems: int


def blame(
    path: str | os.PathLike[str], line: int | tuple[int, int] | None = None, *, relay: "Relay | None" = None
) -> Blame:
    """Return who wrote a line of a file, lines from one to another, or all of them.

    From this relay's ledger, else from that of this directory. If there is none, from the transcripts that Claude Code
    keeps; then `transcripts` says how many sessions were read. Raises `InvalidValueError` if there is no such file or
    line, and `StoreUnavailableError` if there are neither a ledger nor transcripts.
    """
    lines = as_lines(line)
    if relay is not None:
        return blame_at(relay, Path(path), lines)
    settings = find_ledger(Path(path))
    if settings is None:
        with heard(Path(path)) as told:
            return replace(blame_at(told.relay, Path(path), lines), transcripts=told.read)
    if settings == find_settings():
        from batonpass.default import default_relay  # noqa: PLC0415 - only programs have one

        return blame_at(default_relay(create=False), Path(path), lines)
    with closing(open_store(settings.ledger, create=False)) as beside:
        return blame_in(beside, Path(path), lines)


def as_lines(line: int | tuple[int, int] | None) -> Lines | None:
    """Return which lines are meant."""
    if line is None:
        return None
    first, last = line if isinstance(line, tuple) else (line, line)
    return Lines(first=first, last=last)


def blame_at(relay: "Relay", path: Path, lines: Lines | None = None) -> Blame:
    """Return who wrote lines of a file, from one ledger."""
    return blame_in(relay.store, path, lines)


def blame_in(store: LedgerStore, path: Path, lines: Lines | None = None) -> Blame:
    """Return who wrote lines of a file, from one store: reading takes no keys."""
    with store.view() as view:
        return blame_file(view, asked_file(path), lines)


def find_span(where: str) -> CommitSpan | None:
    """Return the diff that is meant: a directory with what is not committed there, a commit, or `BASE..HEAD`.

    None if it is none of them. Raises `NotFoundError` if one end of a diff is no commit.
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
    """Yield the hunks of a diff with who wrote what they added."""

    def blame_of(path: str) -> Blame | None:
        whole = span.repository.root / path
        if span.head is None:
            try:
                return blame_file(view, asked_file(whole))
            except InvalidValueError:
                return None  # too large, a link to nothing, gone meanwhile: the rest of the diff is told all the same
        data = span.read_file(path)
        place = FilePlace(root=span.repository.root, path=path, roots=tuple(_roots()))
        asked = AskedFile(place=place, data=data, environment=os.environ, at=span.head)
        return None if data is None else blame_file(view, asked)

    return blame_hunks(span.read(), blame_of)


def asked_file(path: Path) -> AskedFile:
    """Return a file as it is now. Raises `InvalidValueError` for what is no file."""
    data = read_file(path)  # before anything else: it refuses what is no path
    return AskedFile(place=place_of(path, roots=_roots()), data=data, environment=os.environ)


def find_ledger(path: Path | None, ledger: str | None = None) -> Settings | None:
    """Return the ledger to ask about a file: what was named, else the nearest from here, else the nearest to the file.

    None if nobody named one and none is there.
    """
    found = find_settings(ledger)
    if ledger or os.environ.get(LEDGER) or _is_there(found):
        return found
    beside = None if path is None else find_settings(directory=path.absolute().parent)
    return beside if beside is not None and _is_there(beside) else None


def _is_there(settings: Settings) -> bool:
    return not settings.ledger.startswith(SQLITE) or Path(settings.ledger.removeprefix(SQLITE)).exists()


def _roots() -> Iterator[Path]:
    """Yield where paths may have been told from: where the ledger lies, and here."""
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
    """Read the transcripts that may tell of a file, or of the project here, into a ledger that is gone afterwards.

    Raises `StoreUnavailableError` if there are none.
    """
    # What makes a ledger of transcripts takes a while to import, and where there is a ledger nobody needs it.
    from batonpass.adapters.claude_code.importer.transcript_import import import_transcripts  # noqa: PLC0415 - as above
    from batonpass.adapters.claude_code.transcripts.transcript_places import find_transcripts  # noqa: PLC0415 - as above
    from batonpass.adapters.claude_code.transcripts.transcript_search import mentioning, total_size  # noqa: PLC0415 - as above
    from batonpass.relay import Relay  # noqa: PLC0415 - as above

    project = Path.cwd().resolve() if path is None else project_of(path)
    found = list(find_transcripts(project))
    if not found:
        raise StoreUnavailableError(
            f"there is no ledger here, and Claude Code has kept no session of {project}; record something first"
        )
    wanted = found if path is None else list(filter(mentioning(find_names(asked_file(path)).paths), found))
    sessions = {one.session for one in wanted}

    def is_wanted(transcript: "Transcript") -> bool:
        return transcript.session in sessions

    with ExitStack() as stack:
        url, home = MEMORY, None
        if total_size(wanted) > _IN_MEMORY:
            from tempfile import TemporaryDirectory  # noqa: PLC0415 - few have so many sessions

            home = Path(stack.enter_context(TemporaryDirectory(prefix="batonpass-blame-")))
            url = f"{SQLITE}{home / 'ledger.db'}"
        relay = stack.enter_context(Relay.open(url, home=home))
        imported = import_transcripts(relay, project, only=is_wanted, progress=progress)
        _ = relay.recording  # founds the ledger, if there was nothing to import: an empty one answers, too
        yield TranscriptLedger(
            relay=relay,
            project=project,
            found=len(found),
            read=imported.counts.sessions,
            problems=imported.counts.unread,
        )
