"""The authors of the lines of a commit, from a ledger, in the formats of other tools.

Those have no place for a signature, a doubt or a hearsay: only lines of which it is certain here who wrote them are
written, and a line that nobody is named for stays unclaimed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from batonpass.accounts.blame.commit_notes import ClaimedFile
from batonpass.notes.foreign.agent_trace import TracedLines, write_trace
from batonpass.notes.foreign.authorship_log import AgentIdentity, AttestedLines, AuthorshipSession, write_authorship
from batonpass.notes.line_ranges import LineRanges
from batonpass.notes.note_record import NotedRun

_UNKNOWN = "unknown"  # git-ai requires a model


def export_authorship(commit: str, files: Iterable[ClaimedFile]) -> bytes | None:
    """Return the log that git-ai would keep for a commit; None if nothing is known of its lines."""
    return write_authorship(commit, {file.path: _attested(file.by) for file in files})


def export_trace(commit: str, files: Iterable[ClaimedFile], *, at: datetime, version: str) -> bytes | None:
    """Return the record of Agent Trace for a commit; None if nothing is known of its lines."""
    lines = [
        TracedLines(
            path=file.path,
            lines=LineRanges.parse(call.lines),
            run=run.run,
            call=call.call,
            model=run.model,
            facts=_facts(run),
        )
        for file in files
        for run in file.by
        for call in run.calls
        if call.lines
    ]
    return write_trace(commit, lines, at=at, version=version) if lines else None


def _attested(by: Sequence[NotedRun]) -> list[AttestedLines]:
    return [
        AttestedLines(session=_session(run), call=call.call, lines=LineRanges.parse(call.lines))
        for run in by
        for call in run.calls
        if call.lines
    ]


def _session(run: NotedRun) -> AuthorshipSession:
    agent = AgentIdentity(tool=run.program or run.agent, id=run.run, model=run.model or _UNKNOWN)
    return AuthorshipSession(agent_id=agent, human_author=run.human.removeprefix("user:"))


def _facts(run: NotedRun) -> dict[str, str]:
    told = {"agent": run.agent, "for": run.human, "program": run.program, "standing": run.standing}
    return {name: value for name, value in told.items() if value is not None}
