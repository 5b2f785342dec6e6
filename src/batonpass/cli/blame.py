"""`batonpass blame`: who wrote a line, on which task, for whom, and by whose leave."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from batonpass.accounts.blame import Lines
from batonpass.accounts.blame_asking import (
    as_digest,
    blame_artifact,
    blame_digest,
    blame_effect,
    blame_text,
    require_words,
)
from batonpass.accounts.blame_text import Row, called, quoted, render_blame, spelled, who
from batonpass.accounts.blame_values import Blame, Known, Line, Place
from batonpass.accounts.trail_telling import Tone
from batonpass.adapters.blaming import blame_at, find_ledger, heard, project_of
from batonpass.adapters.claude_code.places import find_transcripts
from batonpass.audit.lookup import ending
from batonpass.cli.blame_facts import blame_facts
from batonpass.cli.exits import NO
from batonpass.cli.opening import IMPORT_HINT, viewed
from batonpass.cli.options import checked, given_ledger, json_option, ledger_option
from batonpass.cli.printing import Painted, paint, say, say_json, table, tell
from batonpass.cli.progress import progress_bar
from batonpass.cli.words import counted
from batonpass.relay import Relay
from batonpass.store.port import LedgerView

_COLOURS: Final = {Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}
_WHERE: Final = re.compile(r"(?P<path>.+?):(?P<first>\d{1,99})(?:-(?P<last>\d{1,99}))?", re.DOTALL)
_MOST: Final = 20

Asking = Callable[[LedgerView], Blame]


@click.command()
@click.argument("where", metavar="[PATH[:LINE[-LINE]]]", required=False)
@click.option("--all", "every", is_flag=True, help="Every line of the file in a table, with who wrote it.")
@click.option("--full", is_flag=True, help="Whole tasks, every hop, the lines of the change, whole ids.")
@click.option("--effect", metavar="CALL|TARGET", help="Who made a call, or changed this, and what it changed.")
@click.option("--artifact", metavar="NAME|ID", help="Who attached it.")
@click.option(
    "--digest",
    metavar="SHA256",
    callback=checked(as_digest),
    help="Which change wrote or replaced bytes with this digest.",
)
@click.option(
    "--text",
    metavar="WORDS",
    callback=checked(require_words),
    help="Which tasks, statements, calls and changes have these words in them.",
)
@json_option
@ledger_option
def command(
    where: str | None,
    *,
    every: bool,
    full: bool,
    effect: str | None,
    artifact: str | None,
    digest: str | None,
    text: str | None,
    as_json: bool,
) -> None:
    """Say who wrote a line of a file.

    Which agent and sub-agent, when, on which task, and the chain of handoffs up to the human's words; by whose leave,
    and whether anybody verified it; the call, and whether its receipts hold. Without a ledger it reads the transcripts
    that Claude Code keeps. What no recorded change wrote is said to be unexplained; nothing is guessed.
    """
    asked = {"PATH": where, "--effect": effect, "--artifact": artifact, "--digest": digest, "--text": text}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError(f"give one of {', '.join(asked)}")
    if every and where is None:
        raise click.UsageError("--all goes with PATH")
    if where is not None:
        blame = _of_file(where)
    else:
        with _asked(None) as (relay, sessions), viewed(relay) as view:
            found = _asking(effect, artifact, digest, text, full=full)(view)
            blame = replace(found, transcripts=sessions)
    _answer(blame, every=every, full=full, as_json=as_json)
    if not blame.is_explained or not blame.holds:
        click.get_current_context().exit(NO)


def _of_file(where: str) -> Blame:
    path, lines = _parsed(where)
    with _asked(path) as (relay, sessions):
        blame = replace(blame_at(relay, path, lines), transcripts=sessions)
    if not blame.recorded and not blame.is_heard and next(find_transcripts(project_of(path)), None) is not None:
        tell(paint(IMPORT_HINT, dim=True))
    return blame


def _parsed(where: str) -> tuple[Path, Lines | None]:
    """Return the file and the lines that are meant; a file whose name ends like a line number is a file."""
    found = _WHERE.fullmatch(where)
    if found is None or Path(where).exists():
        return Path(where), None
    first = int(found["first"])
    return Path(found["path"]), Lines(first=first, last=first if found["last"] is None else int(found["last"]))


def _asking(effect: str | None, artifact: str | None, digest: str | None, text: str | None, *, full: bool) -> Asking:
    if effect is not None:
        return lambda view: blame_effect(view, effect)
    if artifact is not None:
        return lambda view: blame_artifact(view, artifact)
    if digest is not None:
        return lambda view: blame_digest(view, digest)
    return lambda view: blame_text(view, text or "", most=None if full else _MOST)


@contextmanager
def _asked(path: Path | None) -> Iterator[tuple[Relay, int | None]]:
    """Open the ledger that is meant, or one that is made from transcripts for this answer."""
    settings = find_ledger(path, given_ledger())
    if settings is not None:
        with Relay.open(settings.ledger, home=settings.home, create=False) as relay:
            yield relay, None
        return
    with progress_bar("reading, in KiB") as bar:
        told = None if bar is None else lambda done, total: bar(done >> 10, total >> 10)
        with heard(path, progress=told) as read:
            tell(
                paint(
                    f"no ledger here: read {counted(read.read, 'transcript')} of {counted(read.found, 'session')} that "
                    "Claude Code keeps; nobody signed them, so this is hearsay",
                    dim=True,
                )
            )
            yield read.relay, read.read


def _answer(blame: Blame, *, every: bool, full: bool, as_json: bool) -> None:
    if as_json:
        say_json(blame_facts(blame))
        return
    if every and blame.lines:
        _say_table(blame, full=full)
        return
    if blame.places:
        _say_places(blame, full=full)
    elif not blame.lines and not blame.calls and not blame.notes:
        say(f"nothing that is recorded here has {blame.asked}")
    for row in render_blame(blame, full=full):
        say(_painted(row))


def _painted(row: Row) -> Painted:
    parts = (paint(part.text, _COLOURS.get(part.tone), dim=part.tone is Tone.QUIET) for part in row.parts)
    return Painted(paint(row.indent) + "".join(parts).rstrip())


def _say_table(blame: Blame, *, full: bool) -> None:
    now = datetime.now().astimezone()
    rows = [_row(blame, line, now, full=full) for line in blame.lines]
    table(rows, header=["line", "agent", "when", "call", "text"])
    if any(line.known is Known.CANDIDATES and line.or_nobody for line in blame.lines):
        tell(paint("? perhaps: nothing shows who wrote this line; ask for it alone to see who may have", dim=True))
    for note in blame.notes:
        tell(paint(note, dim=True))


def _row(blame: Blame, line: Line, now: datetime, *, full: bool) -> list[str]:
    makers = [blame.makers[call] for call in line.calls if call in blame.makers]
    names = list(dict.fromkeys(who(maker, transcripts=blame.is_heard, full=full) for maker in makers))
    if not makers:
        agent: str = paint("unexplained", "yellow")
    elif line.run is not None or len(names) == 1:
        agent = f"{names[0]}{'?' * (line.known is Known.CANDIDATES)}"
    else:
        agent = paint(f"one of {len(names)}: {', '.join(names)}{'?' * line.or_nobody}", "yellow")
    when = "" if not makers else spelled(makers[-1].at, now)
    call = called(makers[0], transcripts=blame.is_heard, full=full) if len(makers) == 1 else ""
    return [str(line.number), agent, when, call, line.text.expandtabs(4)]


def _id_of(place: Place, *, transcripts: bool, full: bool) -> str:
    """Return what names a place: of a transcript, by the id that it has there, since no ledger keeps ours."""
    theirs = (place.key or "").rpartition("/")[2] if transcripts else None
    known = (place.call or place.handoff or place.receipt) if theirs is None else theirs
    return known if full else ending(known, 6)


def _say_places(blame: Blame, *, full: bool) -> None:
    now = datetime.now().astimezone()
    rows = [
        [
            spelled(place.at, now),
            (place.theirs if blame.is_heard else None) or place.agent,
            place.what,
            _id_of(place, transcripts=blame.is_heard, full=full),
            place.detail if full else " ".join(place.detail.split()),
        ]
        for place in blame.places
    ]
    table(rows, header=["when", "agent", "what", "id", "where"])
    if (first := blame.makers.get(blame.places[0].receipt)) is not None:
        name, human = who(first, transcripts=blame.is_heard), first.principal.removeprefix("user:")
        task = "" if first.run.handoff is None else f" · {quoted(first.task)}"
        say(paint(f"first: {name}{task} ← {human}: {quoted(first.said)}", dim=True))
