"""Imports transcripts into a ledger. Importing again adds only what is new, under a new root."""

import contextlib
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.adapters.claude_code.importer.draft_batches import Batch
from batonpass.adapters.claude_code.importer.import_sources import (
    KnownSession,
    RecordedSession,
    find_known,
    read_recorded,
)
from batonpass.adapters.claude_code.importer.session_drafts import ImportCounts, SessionDrafts
from batonpass.adapters.claude_code.transcripts.conversation import read_conversation
from batonpass.adapters.claude_code.transcripts.transcript_lines import began_at, find_uuids
from batonpass.adapters.claude_code.transcripts.transcript_places import Transcript, find_transcripts
from batonpass.adapters.claude_code.transcripts.transcript_values import SkippedLine
from batonpass.attribution.git.git_process import GitProcess, GitSilentError
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PrincipalId, RunId, require_principal
from batonpass.relay import Relay, desk_of, recording_of

Progress: TypeAlias = Callable[[int, int], None]

_PROBLEMS_KEPT: Final = 1000
_GIT_ANSWERS: Final = timedelta(seconds=10)


class Imported(Struct, frozen=True, kw_only=True):
    """The counts of an import, and the lines it could not read."""

    counts: ImportCounts
    problems: tuple[SkippedLine, ...]  # the first ones


def import_transcripts(
    relay: Relay,
    project: Path,
    *,
    since: datetime | None = None,
    progress: Progress | None = None,
    by: str | None = None,
    config: Path | None = None,
    only: Callable[[Transcript], bool] | None = None,
) -> Imported:
    """Record the sessions of Claude Code in a project's directory. Importing twice is the same as once.

    A session that grew since is continued: a new root has the new part. A session that was erased in this ledger stays
    erased. `since` skips sessions that ended before, and `only` those for which it is false. Receipts have the time of
    the import; the original times are in their sources.
    """
    found = (one for one in find_transcripts(project.absolute(), config=config) if only is None or only(one))
    return _Import(relay, project.absolute(), by=by).run(found, since=since, progress=progress)


def principal_of(project: Path) -> PrincipalId:
    """Return the principal of sessions in a directory: git's user there, else the login name."""
    email = _git_email(project)
    for name in (email, os.environ.get("USER")):
        with contextlib.suppress(InvalidValueError):
            return require_principal("by", PrincipalId(f"user:{name or ''}"))
    return PrincipalId("user:unknown")


class _Import:
    def __init__(self, relay: Relay, project: Path, *, by: str | None) -> None:
        self._relay = relay
        self._project = project
        self._by = principal_of(project) if by is None else require_principal("by", PrincipalId(by))
        self._owners: dict[str, str] = {}  # the session that wrote a line, by the line's id
        self._roots: dict[str, RunId] = {}  # the latest root of each session
        self._counts = ImportCounts()
        self._problems: list[SkippedLine] = []

    def run(self, transcripts: Iterable[Transcript], *, since: datetime | None, progress: Progress | None) -> Imported:
        found = sorted(transcripts, key=_beginning)
        known = self._find_known(found)
        changed = [one.session for one in found if _is_changed(one, known.get(one.session), since)]
        self._counts.found = len(found)
        done, total = 0, sum(sum(one.sizes.values()) for one in found)
        for transcript in found:
            if transcript.session in changed:
                changed.remove(transcript.session)
                self._session(transcript, known.get(transcript.session))
            elif changed:
                # A later session may be a fork that begins with copies of its lines.
                self._owners.update(dict.fromkeys(find_uuids(transcript.main), transcript.session))
            done += sum(transcript.sizes.values())
            if progress is not None:
                progress(done, total)
        return Imported(counts=self._counts, problems=tuple(self._problems))

    def _find_known(self, found: list[Transcript]) -> dict[str, KnownSession]:
        if not self._relay.store.founded():
            return {}
        with self._relay.store.view() as view:
            known = {one.session: there for one in found if (there := find_known(view, one.session)) is not None}
        self._roots = {session: there.roots[0] for session, there in known.items()}
        return known

    def _session(self, transcript: Transcript, known: KnownSession | None) -> None:
        sizes = transcript.sizes  # before reading, so that lines written meanwhile are imported the next time
        conversation = read_conversation(transcript, self._project, without=self._owners)
        self._owners.update(dict.fromkeys(conversation.uuids, transcript.session))
        self._counts.unread += conversation.unread
        self._problems += conversation.problems[: _PROBLEMS_KEPT - len(self._problems)]
        recorded = RecordedSession()
        if known is not None:
            with self._relay.store.view() as view:
                recorded = read_recorded(view, known.roots)
        if recorded.erased:
            self._problem(transcript.main, "was erased in this ledger and is not imported again")
            return
        forked = None if conversation.copied is None else self._owners[conversation.copied]
        continues = self._roots.get(transcript.session) or self._roots.get(forked or "")
        if not recorded.is_anything_new(conversation):
            return
        batch = Batch(recording_of(self._relay))
        drafts = SessionDrafts(
            desk_of(self._relay),
            batch,
            conversation,
            by=self._by,
            recorded=recorded,
            continues=continues,
            files=transcript.files,
        )
        try:
            self._roots[conversation.info.id] = drafts.record(sizes)
        except InvalidValueError as error:
            self._problem(transcript.main, f"cannot be recorded: {error}")
        else:
            self._counts.add(drafts.counts)
            self._counts.receipts += batch.appended

    def _problem(self, path: Path, what: str) -> None:
        self._problems.append(SkippedLine(path=path, line=0, what=what))


def _is_changed(transcript: Transcript, known: KnownSession | None, since: datetime | None) -> bool:
    if since is not None:
        written = max((path.stat().st_mtime for path in transcript.files if path.exists()), default=0.0)
        if datetime.fromtimestamp(written, UTC) < since:
            return False
    return known is None or known.sizes != transcript.sizes


def _beginning(transcript: Transcript) -> tuple[datetime, float, str]:
    """Return a key that sorts an original before its forks: they share lines, but a fork was begun later."""
    try:
        written = transcript.main.stat().st_mtime
    except OSError:
        written = 0.0
    return began_at(transcript.main), written, transcript.session


def _git_email(project: Path) -> str | None:
    git = GitProcess(root=project, environment=os.environ, answer_within=_GIT_ANSWERS)
    try:
        return git.text("config", "user.email").strip() or None
    except GitSilentError:
        return None
