"""`batonpass import`: import the sessions that coding agents keep, and traces of frameworks."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import asdict

from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.adapters.importer.session_import import Imported, count_sessions, import_sessions
from batonpass.adapters.line_blame import find_ledger
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.adapters.session_readers import NAMED_READERS, READERS
from batonpass.adapters.trace_files.trace_reader import NamedSource
from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import given_ledger, json_option, ledger_and_json, project_option, read_moment
from batonpass.cli.output.exits import NO
from batonpass.cli.output.progress import progress_bar
from batonpass.cli.output.terminal import say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.store.factory import SQLITE, open_store
from batonpass.store.port import LedgerStore

_SHOWN: Final = 10


@click.group(invoke_without_command=True)
@project_option
@json_option
@click.pass_context
def command(context: click.Context, project: Path, *, as_json: bool) -> None:
    """Import the sessions that coding agents keep, or traces of frameworks, into the ledger.

    Without a name: list the agents that have kept sessions of this directory or below it.
    """
    if context.invoked_subcommand is not None:
        return
    readers = [one() for one in READERS.values()]
    found = [(reader, count) for reader in readers if (count := sum(1 for _ in reader.find(project.absolute())))]
    if as_json:
        say_json([{"name": one.program, "sessions": count, "place": str(one.place)} for one, count in found])
    elif found:
        table(
            [[one.title, counted(count, "session"), f"batonpass import {one.program}"] for one, count in found],
            header=["agent", "kept here", "to record them"],
        )
    if not found:
        tell(f"no session of {project.absolute()} found; looked for those of {', '.join(one.title for one in readers)}")
        context.exit(NO)


def _options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that every import has."""
    for option in reversed(
        (
            project_option,
            click.option(
                "--since", metavar="WHEN", callback=read_moment, help="Skip sessions that ended before: 2d, or a date."
            ),
            click.option("--by", metavar="WHO", help="For whom they worked: user:ana. Without it, git's user here."),
            click.option("--dry-run", is_flag=True, help="Read everything, say what is new, and record nothing."),
            ledger_and_json,
        )
    ):
        function = option(function)
    return function


def _importing(kind: type[SessionReader]) -> click.Command:
    @click.command(kind.program, help=_help(kind), short_help=f"Import the sessions that {kind.title} has kept.")
    @_options
    def importing(project: Path, **options: Any) -> None:  # noqa: ANN401 - as `_import` takes them
        _import(kind(), project, **options)

    return importing


def _help(kind: type[SessionReader]) -> str:
    return f"""Import the sessions of a project that {kind.title} has kept.

    Records prompts, sub-agents, calls and changed files of sessions in this directory or below it. Importing again adds
    only what is new. Nobody signed these files, and every receipt says so.
    """


def _importing_named(kind: type[NamedSource]) -> click.Command:
    @click.command(kind.program, help=_help_named(kind), short_help=f"Import {kind.source}.")
    @click.argument("sources", metavar="FILE...", nargs=-1, required=True)
    @_options
    def importing(sources: tuple[str, ...], project: Path, **options: Any) -> None:  # noqa: ANN401 - as above
        _import(kind(sources), project, **options)

    return importing


def _help_named(kind: type[NamedSource]) -> str:
    return f"""Import {kind.source}.

    Records prompts, agents, calls and what else is told of all sessions in them. Importing again adds only what is new.
    Nobody signed these files, and every receipt says so.
    """


for _kind in READERS.values():
    command.add_command(_importing(_kind))
for _named in NAMED_READERS.values():
    command.add_command(_importing_named(_named))


def _import(
    reader: SessionReader, project: Path, *, since: datetime | None, by: str | None, dry_run: bool, as_json: bool
) -> None:
    if next(reader.find(project.absolute()), None) is None:
        problems = reader.problems()
        if as_json:
            say_json(
                _facts(Imported(counts=ImportCounts(unread=sum(one.times for one in problems)), problems=problems))
            )
        else:
            _tell_problems(problems)
        of = "" if isinstance(reader, NamedSource) else f" of {project.absolute()}"
        tell(f"no session{of} found in {reader.place}")
        click.get_current_context().exit(NO)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar("reading, in KiB" if dry_run else "importing, in KiB"))
        told = None if bar is None else lambda done, total: bar(done >> 10, total >> 10)
        if dry_run:
            imported = count_sessions(_store(stack), project, reader, since=since, progress=told)
        else:
            relay = stack.enter_context(opened_relay(create=True))
            imported = import_sessions(relay, project, reader, since=since, progress=told, by=by)
    if as_json:
        say_json(_facts(imported))
        return
    say(_sentence(imported.counts, "would import" if dry_run else "imported"))
    _tell_problems(imported.problems)


def _tell_problems(problems: Sequence[SkippedLine]) -> None:
    for problem in problems[:_SHOWN]:
        tell(f"skipped {problem}")
    if (more := len(problems) - _SHOWN) > 0:
        tell(f"and {more:,} more; --json lists them")


def _store(stack: ExitStack) -> LedgerStore | None:
    """Open the chosen ledger to read it; None if it is still to be made."""
    there = find_ledger(None, given_ledger())
    if there is None or (there.ledger.startswith(SQLITE) and not Path(there.ledger.removeprefix(SQLITE)).exists()):
        return None
    return stack.enter_context(closing(open_store(there.ledger, create=False)))


def _sentence(counts: ImportCounts, verb: str) -> str:
    if not counts.sessions:
        return f"nothing new in {counted(counts.found, 'session')}"
    parts = (
        counted(counts.prompts, "prompt"),
        counted(counts.subagents, "sub-agent"),
        counted(counts.calls, "call"),
        counted(counts.changes, "change to a file", plural="changes to files"),
    )
    return f"{verb} {counted(counts.sessions, 'session')} of {counts.found:,}: {', '.join(parts)}"


def _facts(imported: Imported) -> dict[str, object]:
    problems = [{"path": str(one.path), "line": one.line, "problem": one.what} for one in imported.problems]
    return {**asdict(imported.counts), "problems": problems}
