"""`batonpass import`: import what other programs have recorded."""

from datetime import datetime
from pathlib import Path
from typing import Final

import click
from msgspec.structs import asdict

from batonpass.adapters.claude_code.importer.session_drafts import ImportCounts
from batonpass.adapters.claude_code.importer.transcript_import import Imported, import_transcripts
from batonpass.adapters.claude_code.transcripts.transcript_places import config_directory, find_transcripts
from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import ledger_and_json, project_option, read_moment
from batonpass.cli.output.exits import NO
from batonpass.cli.output.progress import progress_bar
from batonpass.cli.output.terminal import say, say_json, tell
from batonpass.cli.output.units import counted

_SHOWN: Final = 10


@click.group()
def command() -> None:
    """Import what other programs have recorded into the ledger."""


@command.command("claude-code")
@project_option
@click.option("--since", metavar="WHEN", callback=read_moment, help="Skip sessions that ended before: 2d, or a date.")
@ledger_and_json
def claude_code(project: Path, since: datetime | None, *, as_json: bool) -> None:
    """Import the sessions of a project that Claude Code has kept.

    Records prompts, sub-agents, calls and changed files of sessions in this directory or below it. Importing again adds
    only what is new. Nobody signed these transcripts, and every receipt says so.
    """
    if next(find_transcripts(project), None) is None:
        _say_nothing(project, as_json=as_json)
        click.get_current_context().exit(NO)
    with opened_relay(create=True) as relay, progress_bar("importing, in KiB") as bar:
        told = None if bar is None else lambda done, total: bar(done >> 10, total >> 10)
        imported = import_transcripts(relay, project, since=since, progress=told)
    if as_json:
        say_json(_facts(imported))
        return
    say(_sentence(imported.counts))
    for problem in imported.problems[:_SHOWN]:
        tell(f"skipped {problem}")
    if (more := len(imported.problems) - _SHOWN) > 0:
        tell(f"and {more:,} more; --json lists them")


def _say_nothing(project: Path, *, as_json: bool) -> None:
    if as_json:
        say_json(_facts(Imported(counts=ImportCounts(), problems=())))
    tell(f"no session of {project.absolute()} found in {config_directory() / 'projects'}")


def _sentence(counts: ImportCounts) -> str:
    if not counts.sessions:
        return f"nothing new in {counted(counts.found, 'session')}"
    parts = (
        counted(counts.prompts, "prompt"),
        counted(counts.subagents, "sub-agent"),
        counted(counts.calls, "call"),
        counted(counts.changes, "change to a file", plural="changes to files"),
    )
    return f"imported {counted(counts.sessions, 'session')} of {counts.found:,}: {', '.join(parts)}"


def _facts(imported: Imported) -> dict[str, object]:
    problems = [{"path": str(one.path), "line": one.line, "problem": one.what} for one in imported.problems]
    return {**asdict(imported.counts), "problems": problems}
