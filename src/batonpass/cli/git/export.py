"""`batonpass git export`: the authors of lines, for tools that read other formats."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from batonpass import __version__
from batonpass.accounts.blame.commit_notes import ClaimedFile, CommitReader
from batonpass.accounts.blame.line_export import export_authorship, export_trace
from batonpass.cli.git.share import MOST_COMMITS, repository_here, said_by_git
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.output.terminal import say, say_json
from batonpass.cli.output.units import counted
from batonpass.notes.foreign.authorship_log import REF
from batonpass.notes.note_store import NoteRepository


def export_notes(span: str, *, as_json: bool) -> None:
    """Write notes as git-ai keeps them, under its ref; those that are there stay."""
    with said_by_git():
        with _claims(span) as (repository, claims):
            logs = {commit: export_authorship(commit, files) for commit, files in claims}
        known = {commit: log for commit, log in logs.items() if log is not None}
        written = repository.add_bodies(REF, known, at=datetime.now(UTC))
    if as_json:
        kept = [commit for commit in known if commit not in written]
        say_json({"ref": REF, "written": written, "kept": kept})
        return
    kept_words = f", {len(known) - len(written)} had one" if len(known) > len(written) else ""
    say(f"{REF}: {counted(len(written), 'note')} written{kept_words}")


def print_traces(span: str) -> None:
    """Print records of Agent Trace, one line for each commit of which something is known."""
    with said_by_git(), _claims(span) as (_, claims):
        for commit, files in claims:
            trace = export_trace(commit, files, at=datetime.now(UTC), version=__version__)
            if trace is not None:
                click.echo(trace)


@contextmanager
def _claims(span: str) -> Iterator[tuple[NoteRepository, Iterator[tuple[str, list[ClaimedFile]]]]]:
    repository = repository_here()
    commits = repository.commits(span, most=MOST_COMMITS)
    with opened_view() as view:
        reader = CommitReader(view, repository)
        yield repository, ((commit, list(reader.claims(commit))) for commit in commits)
