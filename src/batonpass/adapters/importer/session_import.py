"""Imports sessions into a ledger. Importing again adds only new records, under a new root."""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.adapters.importer.committed_files import CommittedFiles
from batonpass.adapters.importer.draft_batches import Batch
from batonpass.adapters.importer.import_sources import (
    KnownSession,
    RecordedSession,
    find_known,
    read_recorded,
)
from batonpass.adapters.importer.session_drafts import ImportCounts, SessionDrafts, count_new
from batonpass.adapters.session_files.conversation import Conversation, read_conversation
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.attribution.git.git_process import GitProcess, GitSilentError
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PrincipalId, RunId, require_principal
from batonpass.relay import Relay, desk_of, recording_of
from batonpass.store.port import LedgerStore

Progress: TypeAlias = Callable[[int, int], None]

LARGEST_SESSION: Final = 512 * 1024 * 1024  # it is held in memory, at about its size, until it is recorded
_PROBLEMS_KEPT: Final = 1000
_GIT_ANSWERS: Final = timedelta(seconds=10)


class Imported(Struct, frozen=True, kw_only=True):
    """The counts of an import, and the lines it could not read."""

    counts: ImportCounts
    problems: tuple[SkippedLine, ...]  # the first ones


def import_sessions(
    relay: Relay,
    project: Path,
    reader: SessionReader,
    *,
    since: datetime | None = None,
    progress: Progress | None = None,
    by: str | None = None,
    found: Iterable[SessionFiles] | None = None,
) -> Imported:
    """Record the sessions that an agent kept of a project's directory. Importing twice is the same as once.

    A session that grew since is continued: a new root has the new part. A session that was erased in this ledger stays
    erased. `since` skips sessions that ended before; `found` are those to import, if not all. Receipts have the time of
    the import; the original times are in their sources.
    """
    sessions = reader.find(project.absolute()) if found is None else found
    return _Import(relay, project.absolute(), reader, by=by).run(sessions, since=since, progress=progress)


def count_sessions(
    store: LedgerStore | None,
    project: Path,
    reader: SessionReader,
    *,
    since: datetime | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Return counts of the records that an import would add to this store. Nothing is written."""
    sessions = _Sessions(store, project.absolute(), reader)
    return sessions.run(reader.find(project.absolute()), since=since, progress=progress)


def principal_of(project: Path) -> PrincipalId:
    """Return the principal of sessions in a directory: git's user there, else the login name."""
    email = _git_email(project)
    for name in (email, os.environ.get("USER")):
        with contextlib.suppress(InvalidValueError):
            return require_principal("by", PrincipalId(f"user:{name or ''}"))
    return PrincipalId("user:unknown")


class _Sessions:
    """Goes through the sessions of a project, originals before their forks, and takes records that a ledger lacks."""

    def __init__(self, store: LedgerStore | None, project: Path, reader: SessionReader) -> None:
        self._store = store
        self._project = project
        self._reader = reader
        self._owners: dict[str, str] = {}  # the session that wrote a line, by the line's id
        self._roots: dict[str, RunId] = {}  # the latest root of each session
        self._committed = CommittedFiles(project)
        self._counts = ImportCounts()
        self._problems: list[SkippedLine] = []

    def run(self, sessions: Iterable[SessionFiles], *, since: datetime | None, progress: Progress | None) -> Imported:
        found = sorted(sessions, key=self._beginning)
        known = self._find_known(found)
        changed = {one.session for one in found if self._is_changed(one, known.get(one.session), since)}
        self._counts.found = len(found)
        done, total = 0, sum(one.bytes for one in found)
        for files in found:
            if files.session in changed:
                changed.remove(files.session)
                self._session(files, known.get(files.session))
            elif changed and self._reader.may_fork:
                # A later session may be a fork that begins with copies of its lines.
                self._owners.update(dict.fromkeys(self._reader.ids(files), files.session))
            done += files.bytes
            if progress is not None:
                progress(done, total)
        for problem in self._reader.problems():
            self._counts.unread += problem.times
            self._problems += [problem] if len(self._problems) < _PROBLEMS_KEPT else []
        return Imported(counts=self._counts, problems=tuple(self._problems))

    def _find_known(self, found: list[SessionFiles]) -> dict[str, KnownSession]:
        if self._store is None or not self._store.founded():
            return {}
        with self._store.view() as view:
            looked = {one.session: find_known(view, self._reader.program, one.session) for one in found}
        known = {session: there for session, there in looked.items() if there is not None}
        self._roots = {session: there.roots[0] for session, there in known.items()}
        return known

    def _session(self, files: SessionFiles, known: KnownSession | None) -> None:
        if files.bytes > LARGEST_SESSION:
            size, most = files.bytes >> 20, LARGEST_SESSION >> 20
            self._counts.unread += 1
            self._problem(files.main, f"has {size:,} MiB, and a session above {most} MiB is not read: nothing of it is")
            return
        sizes = files.sizes  # before reading, so that lines written meanwhile are imported the next time
        conversation = read_conversation(self._reader, files, self._project, without=self._owners)
        self._committed.settle(conversation)
        if self._reader.may_fork:
            self._owners.update(dict.fromkeys(conversation.uuids, files.session))
        self._counts.unread += conversation.unread
        self._problems += conversation.problems[: _PROBLEMS_KEPT - len(self._problems)]
        recorded = RecordedSession()
        if known is not None and self._store is not None:
            with self._store.view() as view:
                recorded = read_recorded(view, known.roots)
        if recorded.erased:
            self._problem(files.main, "was erased in this ledger and is not imported again")
        elif recorded.has_inferred_calls:
            self._problem(files.main, "was recorded live, and its calls have no ids there to compare: not imported")
        elif recorded.is_anything_new(conversation):
            self._take(files, conversation, recorded, sizes)

    def _take(
        self, files: SessionFiles, conversation: Conversation, recorded: RecordedSession, sizes: Mapping[str, int]
    ) -> None:
        """Count the new records of a session."""
        del files, sizes  # for those that record it
        self._counts.add(count_new(conversation, recorded))

    def _is_changed(self, files: SessionFiles, known: KnownSession | None, since: datetime | None) -> bool:
        if since is not None and self._reader.ended_at(files) < since:
            return False
        return known is None or known.sizes != files.sizes

    def _beginning(self, files: SessionFiles) -> tuple[datetime, float, str]:
        """Return a key that sorts an original before its forks: they share lines, but a fork was begun later."""
        try:
            written = files.main.stat().st_mtime
        except OSError:
            written = 0.0
        return self._reader.began_at(files), written, files.session

    def _problem(self, path: Path, what: str) -> None:
        self._problems.append(SkippedLine(path=path, line=0, what=what))


class _Import(_Sessions):
    """Records the new part of each session."""

    def __init__(self, relay: Relay, project: Path, reader: SessionReader, *, by: str | None) -> None:
        super().__init__(relay.store, project, reader)
        self._relay = relay
        self._by = principal_of(project) if by is None else require_principal("by", PrincipalId(by))

    def _take(
        self, files: SessionFiles, conversation: Conversation, recorded: RecordedSession, sizes: Mapping[str, int]
    ) -> None:
        """Record the new part of a session."""
        forked = None if conversation.copied is None else self._owners[conversation.copied]
        batch = Batch(recording_of(self._relay))
        drafts = SessionDrafts(
            desk_of(self._relay),
            batch,
            conversation,
            program=self._reader.program,
            by=self._by,
            recorded=recorded,
            continues=self._roots.get(files.session) or self._roots.get(forked or ""),
            messages=lambda: self._reader.messages(files),
        )
        try:
            self._roots[conversation.info.id] = drafts.record(sizes)
        except InvalidValueError as error:
            self._problem(files.main, f"cannot be recorded: {error}")
        else:
            self._counts.add(drafts.counts)
            self._counts.receipts += batch.appended


def _git_email(project: Path) -> str | None:
    git = GitProcess(root=project, environment=os.environ, answer_within=_GIT_ANSWERS)
    try:
        return git.text("config", "user.email").strip() or None
    except GitSilentError:
        return None
