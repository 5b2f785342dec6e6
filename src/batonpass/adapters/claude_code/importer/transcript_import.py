"""Bringing transcripts into a ledger: once, whatever was there before; what grew since goes on under a new root."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.adapters.claude_code.importer.draft_batches import Batch
from batonpass.adapters.claude_code.importer.import_sources import KnownSession, Newness, find_known, read_held
from batonpass.adapters.claude_code.importer.session_drafts import SessionDrafts
from batonpass.adapters.claude_code.transcripts.conversation import Conversation, read_conversation
from batonpass.adapters.claude_code.transcripts.transcript_lines import began_at, find_uuids
from batonpass.adapters.claude_code.transcripts.transcript_places import Transcript, find_transcripts
from batonpass.adapters.claude_code.transcripts.transcript_values import SkippedLine
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PrincipalId, RunId, require_principal
from batonpass.relay import Relay, desk_of, recording_of

Progress: TypeAlias = Callable[[int, int], None]

_PROBLEMS_KEPT: Final = 1000
_GIT_SECONDS: Final = 10


class ImportCounts(Struct, kw_only=True):
    """How much was found, and how much of it is new in the ledger."""

    found: int = 0  # sessions of the project
    sessions: int = 0  # those of which something was recorded
    prompts: int = 0
    subagents: int = 0
    calls: int = 0
    changes: int = 0
    receipts: int = 0
    unread: int = 0  # lines that could not be read


class Imported(Struct, frozen=True, kw_only=True):
    """What an import did, and what it could not read."""

    counts: ImportCounts
    problems: tuple[SkippedLine, ...]  # the first of them


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
    """Record the sessions of Claude Code that worked in a project's directory. Twice is once.

    A session that grew since is continued: a new root holds what is new. Of a session that was erased here, nothing
    comes back. `since` leaves out sessions that ended before, and `only` those for which it is false. Receipts have the
    time of this import; when things happened stands in their sources.
    """
    found = (one for one in find_transcripts(project.absolute(), config=config) if only is None or only(one))
    return _Import(relay, project.absolute(), by=by).run(found, since=since, progress=progress)


def principal_of(project: Path) -> PrincipalId:
    """Return for whom sessions in a directory were: whoever git commits for there, else whoever is logged in."""
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
        self._owners: dict[str, str] = {}  # which session wrote a line, by the line's id
        self._roots: dict[str, RunId] = {}  # the latest root of each session
        self._counts = ImportCounts()
        self._problems: list[SkippedLine] = []

    def run(self, transcripts: Iterable[Transcript], *, since: datetime | None, progress: Progress | None) -> Imported:
        found = sorted(transcripts, key=_beginning)
        known = self._find_known(found)
        changed = [one.session for one in found if _is_changed(one, known.get(one.session), since)]
        self._counts.found = len(found)
        done, total = 0, sum(_size(one) for one in found)
        for transcript in found:
            if transcript.session in changed:
                changed.remove(transcript.session)
                self._session(transcript, known.get(transcript.session))
            elif changed:
                # A later one may be its fork, and begin with copies of its lines.
                self._owners.update(dict.fromkeys(find_uuids(transcript.main), transcript.session))
            done += _size(transcript)
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
        sizes = _sizes(transcript)  # before reading: what is written meanwhile is new the next time
        conversation = read_conversation(transcript, self._project, without=self._owners)
        self._owners.update(dict.fromkeys(conversation.uuids, transcript.session))
        self._take_problems(conversation)
        newness = Newness()
        if known is not None:
            with self._relay.store.view() as view:
                held = read_held(view, known.roots)
            if held.erased:
                self._problem(transcript.main, "was erased in this ledger, and is not imported again")
                return
            newness = Newness(held.keys, held.heard)
        forked = None if conversation.copied is None else self._owners[conversation.copied]
        continues = self._roots.get(transcript.session) or self._roots.get(forked or "")
        try:
            self._record(conversation, sizes, newness, continues, files=transcript.files)
        except InvalidValueError as error:
            self._problem(transcript.main, f"cannot be recorded: {error}")

    def _record(
        self,
        conversation: Conversation,
        sizes: dict[str, int],
        newness: Newness,
        continues: RunId | None,
        *,
        files: Sequence[Path],
    ) -> None:
        batch = Batch(recording_of(self._relay))
        drafts = SessionDrafts(
            desk_of(self._relay),
            batch,
            conversation,
            by=self._by,
            newness=newness,
            continues=continues,
            files=files,
        )
        if not drafts.is_anything_new():
            return
        self._roots[conversation.info.id] = drafts.record(sizes)
        self._counts.sessions += 1
        self._counts.prompts += drafts.tally.prompts
        self._counts.subagents += drafts.tally.subagents
        self._counts.calls += drafts.tally.calls
        self._counts.changes += drafts.tally.changes
        self._counts.receipts += batch.appended

    def _take_problems(self, conversation: Conversation) -> None:
        self._counts.unread += conversation.unread
        self._problems += conversation.problems[: _PROBLEMS_KEPT - len(self._problems)]

    def _problem(self, path: Path, what: str) -> None:
        self._problems.append(SkippedLine(path=path, line=0, what=what))


def _is_changed(transcript: Transcript, known: KnownSession | None, since: datetime | None) -> bool:
    if since is not None and _last_written(transcript) < since:
        return False
    return known is None or known.sizes != _sizes(transcript)


def _beginning(transcript: Transcript) -> tuple[datetime, float, str]:
    """Return what sorts an original before its forks: both hold the same lines, but a fork was begun later."""
    try:
        written = transcript.main.stat().st_mtime
    except OSError:
        written = 0.0
    return began_at(transcript.main), written, transcript.session


def _sizes(transcript: Transcript) -> dict[str, int]:
    return {path.name: _size_of(path) for path in transcript.files}


def _size(transcript: Transcript) -> int:
    return sum(_sizes(transcript).values())


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _last_written(transcript: Transcript) -> datetime:
    times = [path.stat().st_mtime for path in transcript.files if path.exists()]
    return datetime.fromtimestamp(max(times, default=0.0), UTC)


def _git_email(project: Path) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, and no shell
            ["git", "-C", str(project), "config", "user.email"],  # noqa: S607 - whichever git the person uses
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
