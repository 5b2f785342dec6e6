"""`batonpass blame`: who wrote a line, on which task, for whom, and who approved it."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame, render_blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, LedgerPlace
from batonpass.accounts.blame.blame_words import BlameRow, called, quoted, spelled, who
from batonpass.accounts.blame.file_blame import Lines
from batonpass.accounts.blame.hunk_blame import hunk_row
from batonpass.accounts.trail.receipt_lines import Tone
from batonpass.adapters.line_blame import blame_in, blame_span, find_ledger, find_span, heard, project_of
from batonpass.attribution.git.commit_span import CommitSpan
from batonpass.audit.short_ids import ending
from batonpass.cli.blame.blame_facts import blame_facts, hunk_facts
from batonpass.cli.input.options import checked, given_ledger, ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.progress import progress_bar
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table, tell
from batonpass.cli.output.units import counted
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.base.ids import HANDOFF, RUN
from batonpass.store.factory import open_store
from batonpass.store.port import LedgerStore, LedgerView

_COLOURS: Final = {Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}
_WHERE: Final = re.compile(r"(?P<path>.+?):(?P<first>\d{1,99})(?:-(?P<last>\d{1,99}))?", re.DOTALL)
_MOST: Final = 20

Asking = Callable[[LedgerView], Blame]


# The code for everything but lines takes a while to import, and most questions are about a line.
def _as_digest(text: str) -> str:
    from batonpass.accounts.blame.other_blame import as_digest  # noqa: PLC0415 - as above

    return as_digest(text)


def _require_words(text: str) -> str:
    from batonpass.accounts.blame.other_blame import require_words  # noqa: PLC0415 - as above

    return require_words(text)


@click.command()
@click.argument("where", metavar="[PATH[:LINE[-LINE]]|RUN|COMMIT|BASE..HEAD]", required=False)
@click.option("--all", "every", is_flag=True, help="A table of all lines of the file, with who wrote them.")
@click.option("--full", is_flag=True, help="One screen: who, with which credential, with whose approval, from where.")
@click.option("--effect", metavar="CALL|TARGET", help="Who made a call or changed a target, and what it changed.")
@click.option("--artifact", metavar="NAME|ID", help="Who attached it.")
@click.option(
    "--digest",
    metavar="SHA256",
    callback=checked(_as_digest),
    help="Which change wrote or replaced content with this digest.",
)
@click.option(
    "--text",
    metavar="WORDS",
    callback=checked(_require_words),
    help="Which tasks, statements, calls and changes contain these words.",
)
@ledger_and_json
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
    """Show who wrote a line of a file, worked in a run, or made a commit.

    Shows the agent, the time, the task and the chain of handoffs up to the human; the grant, the approval and the
    verdict; the call, and whether its receipts verify. A commit, BASE..HEAD and a directory with uncommitted work are
    shown hunk by hunk. Without a ledger, the sessions that coding agents keep are read instead. A line that no recorded
    change wrote is unexplained; nothing is guessed.
    """
    asked = {"TARGET": where, "--effect": effect, "--artifact": artifact, "--digest": digest, "--text": text}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError(f"give one of {', '.join(asked)}")
    if every and where is None:
        raise click.UsageError("--all needs PATH")
    span, is_run = (None, False) if where is None or _is_file(where) else (find_span(where), _is_run(where))
    if span is not None and is_run:
        commit = "a directory" if span.head is None else f"commit {span.head[:12]}"
        raise click.UsageError(f"{where} names both {commit} and a run: give the commit, or the end of the run's id")
    if span is not None:
        blames = _of_span(span, full=full, as_json=as_json)
    else:
        blame = _of_file(where, full=full) if where is not None and not is_run else None
        blames = [blame or _of_ledger(where, lambda: _asking(effect, artifact, digest, text, full=full), full=full)]
        _answer(blames[0], every=every, full=full, as_json=as_json)
    if not any(blame.is_explained for blame in blames) or not all(blame.holds for blame in blames):
        click.get_current_context().exit(NO)


def _is_file(where: str) -> bool:
    path, lines = _parsed(where)
    return lines is not None or path.is_file()


def _is_run(where: str) -> bool:
    """Return whether this names a run or a handoff, and no recorded file."""
    settings = find_ledger(None, given_ledger())
    if settings is None or Path(where).exists():
        return False
    from batonpass.audit.meant_ids import get_meant  # noqa: PLC0415 - as above

    with closing(open_store(settings.ledger, create=False)) as store, store.view() as view:
        if next(view.find_touches(where), None) is not None:
            return False
        try:
            get_meant(view, where, (RUN, HANDOFF))
        except AmbiguousIdError:
            return True
        except NotFoundError:
            return False
    return True


def _of_ledger(run: str | None, asking: Callable[[], Asking], *, full: bool) -> Blame:
    """Return the answer to a question that is not about a file."""
    from batonpass.accounts.blame.other_blame import blame_run, with_ways  # noqa: PLC0415 - as above
    from batonpass.cli.input.ledger_access import viewed  # noqa: PLC0415 - as above

    with _asked(None) as (store, sessions), viewed(store) as view:
        found = asking()(view) if run is None else blame_run(view, run)
        return replace(with_ways(view, found) if full else found, transcripts=sessions)


def _of_file(where: str, *, full: bool) -> Blame:
    path, lines = _parsed(where)
    with _asked(path) as (store, sessions):
        blame = replace(blame_in(store, path, lines), transcripts=sessions)
        if full and sessions is None:
            from batonpass.accounts.blame.other_blame import with_ways  # noqa: PLC0415 - as above

            with store.view() as view:
                blame = with_ways(view, blame)
    if not blame.recorded and not blame.is_heard:
        from batonpass.cli.input.ledger_access import suggest_import  # noqa: PLC0415 - as above

        suggest_import(project_of(path))
    return blame


def _of_span(span: CommitSpan, *, full: bool, as_json: bool) -> list[Blame]:
    """Print one line for each hunk of a diff, and return the answers."""
    from batonpass.accounts.blame.other_blame import with_ways  # noqa: PLC0415 - as above
    from batonpass.cli.input.ledger_access import viewed  # noqa: PLC0415 - as above

    with _asked(None) as (store, sessions), viewed(store) as view:
        hunks = []
        for hunk in blame_span(view, span):
            blame = None if hunk.blame is None else replace(hunk.blame, transcripts=sessions)
            told = with_ways(view, blame) if blame is not None and full and sessions is None else blame
            hunks.append(replace(hunk, blame=told))
            if not as_json:
                say(_painted(hunk_row(hunks[-1])))
    if as_json:
        say_json([hunk_facts(hunk) for hunk in hunks])
    elif not hunks:
        say("there is no difference")
    return [hunk.blame for hunk in hunks if hunk.blame is not None]


def _parsed(where: str) -> tuple[Path, Lines | None]:
    """Return the file and its lines; an existing file whose name ends like a line number is that file."""
    found = _WHERE.fullmatch(where)
    if found is None or Path(where).exists():
        return Path(where), None
    first = int(found["first"])
    return Path(found["path"]), Lines(first=first, last=first if found["last"] is None else int(found["last"]))


def _asking(effect: str | None, artifact: str | None, digest: str | None, text: str | None, *, full: bool) -> Asking:
    from batonpass.accounts.blame.other_blame import blame_artifact, blame_digest, blame_effect, blame_text  # noqa: PLC0415 - as above

    if effect is not None:
        return lambda view: blame_effect(view, effect)
    if artifact is not None:
        return lambda view: blame_artifact(view, artifact)
    if digest is not None:
        return lambda view: blame_digest(view, digest)
    return lambda view: blame_text(view, text or "", most=None if full else _MOST)


@contextmanager
def _asked(path: Path | None) -> Iterator[tuple[LedgerStore, int | None]]:
    """Open the chosen ledger, or a temporary one that is made from transcripts."""
    settings = find_ledger(path, given_ledger())
    if settings is not None:
        with closing(open_store(settings.ledger, create=False)) as store:
            yield store, None
        return
    with progress_bar("reading, in KiB") as bar:
        told = None if bar is None else lambda done, total: bar(done >> 10, total >> 10)
        with heard(path, progress=told) as read:
            said = " and ".join(
                f"{counted(one.read, 'transcript')} of {counted(one.found, 'session')} that {one.title} keeps"
                for one in read.agents
            )
            tell(paint(f"no ledger here: read {said}; they are not signed, so this is hearsay", dim=True))
            yield read.relay.store, read.read


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
        say(f"nothing recorded here has {blame.asked}")
    for row in render_blame(blame, full=full):
        say(_painted(row))


def _painted(row: BlameRow) -> Painted:
    parts = (paint(part.text, _COLOURS.get(part.tone), dim=part.tone is Tone.QUIET) for part in row.parts)
    return Painted(paint(row.indent) + "".join(parts).rstrip())


def _say_table(blame: Blame, *, full: bool) -> None:
    now = datetime.now().astimezone()
    rows = [_row(blame, line, now, full=full) for line in blame.lines]
    table(rows, header=["line", "agent", "when", "call", "text"])
    if any(line.known is HowKnown.CANDIDATES and line.or_nobody for line in blame.lines):
        tell(paint("? perhaps: it is unknown who wrote this line; ask for it alone to see who may have", dim=True))
    for note in blame.notes:
        tell(paint(note, dim=True))


def _row(blame: Blame, line: BlamedLine, now: datetime, *, full: bool) -> list[str]:
    makers = [blame.makers[call] for call in line.calls if call in blame.makers]
    names = list(dict.fromkeys(who(maker, transcripts=blame.is_heard, full=full) for maker in makers))
    if not makers:
        agent: str = paint("unexplained", "yellow")
    elif line.run is not None or len(names) == 1:
        agent = f"{names[0]}{'?' * (line.known is HowKnown.CANDIDATES)}"
    else:
        agent = paint(f"one of {len(names)}: {', '.join(names)}{'?' * line.or_nobody}", "yellow")
    when = "" if not makers else spelled(makers[-1].at, now)
    call = called(makers[0], transcripts=blame.is_heard, full=full) if len(makers) == 1 else ""
    return [str(line.number), agent, when, call, line.text.expandtabs(4)]


def _id_of(place: LedgerPlace, *, transcripts: bool, full: bool) -> str:
    """Return the id of a place; of a transcript, the id that it has there, because no ledger keeps ours."""
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
