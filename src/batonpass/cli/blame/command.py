"""`batonpass blame`: who wrote a line, on which task, for whom, and who approved it."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame, render_blame
from batonpass.accounts.blame.blame_values import LedgerPlace
from batonpass.accounts.blame.blame_words import quoted, spelled, who
from batonpass.accounts.blame.file_blame import Lines
from batonpass.accounts.blame.hunk_blame import hunk_row
from batonpass.accounts.blamed_lines.line_author import AuthorKind
from batonpass.accounts.blamed_lines.line_rows import ListedLine, find_legend, list_lines
from batonpass.adapters.line_blame import (
    blame_by_git,
    blame_in,
    blame_span,
    find_ledger,
    find_span,
    has_transcripts,
    heard,
    is_told_by_git,
    nothing_recorded,
    own_ledger,
    porcelain_in,
    project_of,
)
from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.commit_span import CommitSpan
from batonpass.audit.short_ids import ending
from batonpass.cli.blame.blame_facts import blame_facts, hunk_facts
from batonpass.cli.input.options import checked, given_ledger, ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.pager import page
from batonpass.cli.output.painted_rows import paint_row
from batonpass.cli.output.progress import progress_bar
from batonpass.cli.output.terminal import Painted, columns, cut, paint, say, say_json, table, tell, width
from batonpass.cli.output.units import counted
from batonpass.errors import AmbiguousIdError, NotFoundError, StoreUnavailableError
from batonpass.model.base.ids import HANDOFF, RUN
from batonpass.model.base.visible import visible
from batonpass.store.factory import open_store
from batonpass.store.port import LedgerStore, LedgerView

_WHERE: Final = re.compile(r"(?P<path>.+?):(?P<first>\d{1,99})(?:-(?P<last>\d{1,99}))?", re.DOTALL)
_MOST: Final = 20
_FROM_NOTES: Final = "no ledger here: git notes answer, which other machines signed"
_FROM_OTHERS: Final = "no ledger here: these are claims of git and other tools, and nobody signed them"
_FROM_GIT: Final = "no ledger here: git answers, with notes that other machines signed and claims of other tools"

_LEAST: Final = 12  # columns for a name, however narrow the screen
_AUTHOR_COLOURS: Final = {
    AuthorKind.AGENT: "green",
    AuthorKind.HEARSAY: "cyan",
    AuthorKind.PERHAPS: "yellow",
    AuthorKind.COMMITTED: None,
    AuthorKind.UNEXPLAINED: "magenta",
    AuthorKind.BROKEN: "red",
}

Asking = Callable[[LedgerView], Blame]


class Layout(Struct, frozen=True, kw_only=True):
    """How an answer is to be printed."""

    every: bool  # one row for each line
    full: bool
    as_json: bool
    in_pager: bool


# The code for everything but lines takes a while to import, and most questions are about a line.
def _as_digest(text: str) -> str:
    from batonpass.accounts.blame.other_blame import as_digest  # noqa: PLC0415 - as above

    return as_digest(text)


def _require_words(text: str) -> str:
    from batonpass.accounts.blame.other_blame import require_words  # noqa: PLC0415 - as above

    return require_words(text)


@click.command()
@click.argument("where", metavar="[PATH[:LINE[-LINE]]|RUN|COMMIT|BASE..HEAD]", required=False)
@click.option("--all", "every", is_flag=True, help="One row for each line, also of a range, as for a whole file.")
@click.option("--porcelain", is_flag=True, help="The format of `git blame --porcelain`, for editors.")
@click.option("--line-porcelain", is_flag=True, help="The same, with all headers for each line.")
@click.option("--no-pager", is_flag=True, help="Print a whole file without a pager.")
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
    porcelain: bool,
    line_porcelain: bool,
    no_pager: bool,
    full: bool,
    effect: str | None,
    artifact: str | None,
    digest: str | None,
    text: str | None,
    as_json: bool,
) -> None:
    """Show who wrote a line of a file, worked in a run, or made a commit.

    A whole file is shown with an author beside each line. For a line or a range, shows the agent, the time, the task
    and the chain of handoffs up to the human; the grant, the approval and the verdict; the call, and whether its
    receipts verify. A commit, BASE..HEAD and a directory with uncommitted work are shown hunk by hunk. Without a
    ledger, the sessions that coding agents keep are read instead. A line that no recorded
    change wrote is unexplained; nothing is guessed.
    """
    asked = {"TARGET": where, "--effect": effect, "--artifact": artifact, "--digest": digest, "--text": text}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError(f"give one of {', '.join(asked)}")
    if (every or porcelain or line_porcelain) and where is None:
        raise click.UsageError(f"{'--all' if every else '--porcelain'} needs PATH")
    if porcelain or line_porcelain:
        _say_porcelain(where or "", every=line_porcelain)
        return
    span, is_run = (None, False) if where is None or _is_file(where) else (find_span(where), _is_run(where))
    if span is not None and is_run:
        commit = "a directory" if span.head is None else f"commit {span.head[:12]}"
        raise click.UsageError(f"{where} names both {commit} and a run: give the commit, or the end of the run's id")
    if span is not None:
        blames = _of_span(span, full=full, as_json=as_json)
    else:
        blame = blame_of_file(where, full=full) if where is not None and not is_run else None
        blames = [blame or _of_ledger(where, lambda: _asking(effect, artifact, digest, text, full=full), full=full)]
        is_whole = blame is not None and where is not None and parse_place(where)[1] is None and not full
        layout = Layout(every=every or is_whole, full=full, as_json=as_json, in_pager=not no_pager)
        _answer(blames[0], layout)
    if not any(blame.is_explained for blame in blames) or not all(blame.holds for blame in blames):
        click.get_current_context().exit(NO)


def _is_file(where: str) -> bool:
    path, lines = parse_place(where)
    return lines is not None or path.is_file()


def _is_run(where: str) -> bool:
    """Return whether this names a run or a handoff, and no recorded file."""
    settings = own_ledger(None, given_ledger())
    if settings is None or Path(where).exists():
        return False
    from batonpass.audit.meant_ids import get_meant  # noqa: PLC0415 - as above

    with closing(open_store(settings.ledger, create=False)) as store, store.view() as view:
        if next(view.find_touches(printable(where)), None) is not None:
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


def blame_of_file(where: str, *, full: bool) -> Blame:
    """Return who wrote a file or lines of it, from the chosen ledger, or from git and sessions without one."""
    path, lines = parse_place(where)
    if find_ledger(path, given_ledger()) is None:
        told = blame_by_git(path, lines)
        if told is not None:
            tell(paint(_FROM_NOTES if told.makers else _FROM_OTHERS, dim=True))
            return told
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

    with _asked_span(span) as (store, sessions), nullcontext() if store is None else viewed(store) as view:
        hunks = []
        for hunk in blame_span(view, span):
            blame = None if hunk.blame is None else replace(hunk.blame, transcripts=sessions)
            told = with_ways(view, blame) if blame and view and full and sessions is None else blame
            hunks.append(replace(hunk, blame=told))
            if not as_json:
                say(paint_row(hunk_row(hunks[-1])))
    if as_json:
        say_json([hunk_facts(hunk) for hunk in hunks])
    elif not hunks:
        say("there is no difference")
    return [hunk.blame for hunk in hunks if hunk.blame is not None]


def parse_place(where: str) -> tuple[Path, Lines | None]:
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
def _asked_span(span: CommitSpan) -> Iterator[tuple[LedgerStore | None, int | None]]:
    """Open the chosen ledger, or one made from transcripts; None if there is neither and notes have to answer."""
    here = span.repository.root
    if find_ledger(None, given_ledger()) is None and not has_transcripts(here / "any") and is_told_by_git(span):
        tell(paint(_FROM_GIT, dim=True))
        yield None, None
        return
    with _asked(None) as found:
        yield found


@contextmanager
def _asked(path: Path | None) -> Iterator[tuple[LedgerStore, int | None]]:
    """Open the chosen ledger, or a temporary one that is made from transcripts."""
    settings = own_ledger(path, given_ledger())
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


def _answer(blame: Blame, layout: Layout) -> None:
    full = layout.full
    if layout.as_json:
        say_json(blame_facts(blame))
        return
    if layout.every and blame.lines:
        _say_listing(blame, layout)
        return
    if blame.places:
        _say_places(blame, full=full)
    elif not blame.lines and not blame.calls and not blame.notes:
        say(f"nothing recorded here has {blame.asked}")
    for row in render_blame(blame, full=full):
        say(paint_row(row))


def _say_listing(blame: Blame, layout: Layout) -> None:
    """Print each line with its author: in columns, as wide as their longest cell."""
    lines = list(list_lines(blame, datetime.now().astimezone(), full=layout.full))
    longest = max(width(visible(line.label)) for line in lines)
    widest = longest if layout.full else min(max(_LEAST, columns() // 3), longest)
    days = max(len(line.when) for line in lines)
    digits = len(str(lines[-1].number))
    rows = (_listed(line, (widest, days, digits)) for line in lines)
    page(rows, wanted=layout.in_pager)
    for sign, meaning in find_legend(blame):
        tell(paint(f"{sign} {meaning}".strip(), dim=True))
    for note in blame.notes:
        tell(paint(note, dim=True))


def _listed(line: ListedLine, sizes: tuple[int, int, int]) -> Painted:
    widest, days, digits = sizes
    label = _shortened(visible(line.label), widest)
    colour = _AUTHOR_COLOURS[line.kind]
    name = paint(label, colour, dim=line.is_repeated, bold=line.kind is AuthorKind.BROKEN)
    gap = " " * (widest - width(label) + 2)
    beside = paint(f"{line.when:<{days}}  {line.number:>{digits}})", dim=True)
    return Painted(f"{name}{gap}{beside} {visible(line.text)}".rstrip())


def _shortened(label: str, room: int) -> str:
    """Return a label that fits: the name is cut, and the suffix, which tells two apart, is kept."""
    if width(label) <= room:
        return label
    name, _, rest = label.rpartition(" ")
    return f"{cut(name, room - width(rest) - 1)} {rest}" if name and width(rest) < room // 2 else cut(label, room)


def _say_porcelain(where: str, *, every: bool) -> None:
    """Print lines in git's format. Nobody named is no failure: editors read on only after a success."""
    path, lines = parse_place(where)
    if lines is None and not path.is_file():
        raise click.UsageError("--porcelain needs a file")
    with ExitStack() as stack:
        try:
            store, _ = stack.enter_context(_asked(path))
        except StoreUnavailableError:
            if find_ledger(path, given_ledger()) is not None:
                raise
            # An editor shows at least the answer of git.
            store = stack.enter_context(nothing_recorded())
        printed = porcelain_in(store, path, lines, every=every)
    click.echo(b"".join(line + b"\n" for line in printed), nl=False)


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
