"""`batonpass taint`: where content from outside entered, the shortest way from there, and everything it reached."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import click

from batonpass.accounts.taint.taint_map import TaintQuestion, find_asked, find_brought, map_taint
from batonpass.accounts.taint.taint_values import (
    Did,
    Quote,
    TaintEntry,
    TaintHop,
    Tracing,
    Way,
    marked_parts,
)
from batonpass.accounts.taint.taint_way import find_way
from batonpass.audit.short_ids import ending
from batonpass.cli.input.id_types import ANY_ID
from batonpass.cli.input.ledger_access import opened_store, viewed
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table, tell
from batonpass.cli.output.units import counted, moment
from batonpass.cli.taint.taint_facts import tracing_facts, way_facts
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import CallId
from batonpass.model.base.visible import visible
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView

_COLOURS: Final = {
    Did.HELD: "yellow",
    Did.DENIED: "red",
    Did.APPROVED: "green",
    Did.ENDORSED: "green",
}
_SAID: Final = {
    Did.READ: "it entered here",
    Did.BEGAN_WITH: "it came with the offer",
    Did.REPORTED: "the report counts as based on it",
    Did.RESUMED: "with text of a run that had read it",
    Did.KEPT: "the kept text counts as based on it",
}
_IN_BATON: Final = "it is in the baton, in quarantine"
_IN_ARGUMENTS: Final = "its words are in the arguments"
_SCREEN: Final = 40  # lines
_AROUND: Final = 5  # lines of a text besides its hops
_NAMED: Final = 3  # of many calls in one line
_WHERE: Final = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL)


@click.command()
@click.argument("given", metavar="ID|PATH:LINE|TEXT", type=ANY_ID)
@click.option("--all", "every", is_flag=True, help="Everything that the texts reached, not only the way to this.")
@click.option("--full", is_flag=True, help="Every text and every hop, without shortening.")
@ledger_and_json
def command(given: str, *, every: bool, full: bool, as_json: bool) -> None:
    """Trace content from outside: where each text entered, and its shortest way to ID.

    ID is the end of the id of a run, a handoff, a call or a receipt, or an agent's name; with PATH:LINE it is the call
    that wrote the line. Every hop is shown, with quoted words marked. For a root run, for a text itself (the end of its
    id, `last`, or some of its words), and with --all, everything that the texts reached is shown.
    """
    with opened_store() as store:
        lines = _parsed(given)
        calls = () if lines is None else _writers(store, *lines)
        with viewed(store) as view:
            asked = find_asked(view, given) if lines is None else TaintQuestion()
            ways = [way for target in calls or (asked.target,) if target is not None for way in find_way(view, target)]
            tracings = _traced(view, asked, ways, every=every)
    if not ways and not tracings:
        raise NotFoundError("content from outside", given)
    if as_json:
        say_json([way_facts(way) for way in ways] if not tracings else [tracing_facts(one) for one in tracings])
    elif tracings:
        _say_map(tracings, full=full)
    else:
        _say_ways(given, ways, of_call=lines is not None, full=full)
        if asked.brought:
            tell(paint(f"its own result came from outside too: batonpass taint {given} --all", dim=True))


def _parsed(given: str) -> tuple[Path, int, int] | None:
    """Return the file, the first and the last line; None if this is not PATH:LINE."""
    found = _WHERE.fullmatch(given)
    if found is None or not Path(found["path"]).exists():
        return None
    first = int(found["first"])
    return Path(found["path"]), first, first if found["last"] is None else int(found["last"])


def _writers(store: LedgerStore, path: Path, first: int, last: int) -> tuple[CallId, ...]:
    # Only here: blame is a quarter of what this command would load, and most ask about an id or a text.
    from batonpass.accounts.blame.file_blame import Lines  # noqa: PLC0415
    from batonpass.adapters.line_blame import blame_in  # noqa: PLC0415

    blame = blame_in(store, path, Lines(first=first, last=last))
    return tuple(dict.fromkeys(call for line in blame.lines for call in line.calls))


def _traced(view: LedgerView, asked: TaintQuestion, ways: Sequence[Way], *, every: bool) -> tuple[Tracing, ...]:
    """Return the map if it was asked for, or if there is no way to show."""
    if asked.root is None and not every and ways:
        return ()
    brought = dict(asked.brought) if asked.root is None else dict(find_brought(view, asked.root))
    for way in ways:
        entered = read_receipt(view.get_receipt(way.entry.receipt))
        brought.update(
            dict.fromkeys((one for one in (way.entry.source, *way.entry.also) if one not in brought), entered)
        )
    return map_taint(view, brought)


def _say_ways(given: str, ways: Sequence[Way], *, of_call: bool, full: bool) -> None:
    # A call may have written a whole file: words in the call need not be in the line that was asked about.
    reached, it = ("the call that wrote it", "that call") if of_call else ("it", "it")
    quoting = sum(way.is_quoted_at_the_end for way in ways)
    words = f"words of {quoting} are in {it}" if quoting else f"none of their words are in {it}"
    if len(ways) == 1:
        words = f"its words are in {it}" if quoting else f"none of its words are in {it}"
    if not quoting and (before := sum(way.is_quoted for way in ways)):
        words += f"; words of {before} are on the way to {it}" if len(ways) > 1 else f", but on the way to {it}"
    say(paint(given, bold=True), f" · {counted(len(ways), 'text')} from outside reached {reached} · {words}")
    left = _SCREEN - 2
    for number, way in enumerate(ways):
        rows = _rows(way)
        if not full and number and len(rows) + _AROUND > left:
            more = counted(len(ways) - number, "more text")
            say()
            say(paint(f"{more} from outside: --full shows every way, --all everything they reached", dim=True))
            return
        if not full and len(rows) + _AROUND > left:
            rows = _shortened(rows, left - _AROUND)
        left -= len(rows) + _AROUND
        say()
        _say_entry(way.entry)
        table(rows, indent="  ", fold=True)
        if not way.readable:
            say(paint("  its own text is gone, so nothing can be compared with it", dim=True))
        say(paint(f"{way.entry.source} · receipt {way.entry.receipt}", dim=True))


def _say_entry(entry: TaintEntry) -> None:
    came = f" · {entry.name} · {entry.label} · {entry.by} · {moment(entry.at)}"
    say(paint("from outside", "yellow", bold=True), came)
    if entry.words is not None:
        say(f"  {visible(str(entry.words))}")


def _shortened(rows: list[list[str]], room: int) -> list[list[str]]:
    """Return as many rows as fit, from the beginning and from the end."""
    room = max(room, 4)
    first = room // 2
    gap = ["", "", "", paint(f"… {counted(len(rows) - room + 1, 'more line')}: --full shows them", dim=True)]
    return [*rows[:first], gap, *rows[first + len(rows) - room + 1 :]]


def _rows(way: Way) -> list[list[str]]:
    rows: list[list[str]] = []
    for hop in (*way.hops, *way.since):
        did = paint(hop.did, _COLOURS.get(hop.did), bold=hop.did in _COLOURS)
        rows.append([paint(ending(hop.receipt, 6), dim=True), hop.name, did, _told(hop)])
        rows += [["", "", "", _marked(quote)] for quote in hop.quotes]
    return rows


def _told(hop: TaintHop) -> str:
    told = hop.what or _SAID.get(hop.did, "")
    if hop.in_quarantine:
        told += f" · {_IN_BATON}"
    if hop.flagged and not hop.quotes:
        told += f" · {_IN_ARGUMENTS}, as was recorded then"
    if hop.unread:
        told += f" · erased: {', '.join(hop.unread)}"
    return told


def _marked(quote: Quote) -> Painted:
    """Return a text with the words of the source highlighted."""
    parts = (paint(part, "red", bold=True) if marked else visible(part) for part, marked in marked_parts(quote))
    return Painted(f"{visible(quote.where)}: {''.join(parts)}")


def _say_map(tracings: Sequence[Tracing], *, full: bool) -> None:
    left = _SCREEN
    for number, tracing in enumerate(tracings):
        rows = [_row(steps) for steps in ([step] for step in tracing.steps)] if full else list(_compact(tracing.steps))
        if not full and number and len(rows) + _AROUND > left:
            say(paint(f"{counted(len(tracings) - number, 'more text')} from outside: --full shows all", dim=True))
            return
        if not full and len(rows) + _AROUND > left:
            rows = _shortened(rows, left - _AROUND)
        left -= len(rows) + _AROUND + 1
        if number:
            say()
        _say_entry(tracing.entry)
        reached = [
            counted(tracing.runs, "run"),
            counted(tracing.count(Did.HANDED_ON), "handoff"),
            counted(tracing.count(Did.CALLED, Did.HELD), "call"),
        ]
        held = tracing.count(Did.HELD)
        say(f"  reached {', '.join(reached)} · {held} held · {tracing.count(Did.ENDORSED)} endorsed")
        table(rows, indent="  ")
        say(paint(f"{tracing.entry.source} · receipt {tracing.entry.receipt}", dim=True))


def _compact(steps: Sequence[TaintHop]) -> Iterable[list[str]]:
    """Yield rows without those that follow from others; calls that quote nothing are grouped."""
    came_back = {step.id for step in steps if step.did is Did.CAME_BACK and step.id is not None}
    handed_on = {step.id for step in steps if step.did is Did.HANDED_ON}
    told = [
        step
        for step in steps
        if not (step.did is Did.REPORTED and step.id in came_back)
        and not (step.did is Did.BEGAN_WITH and step.id in handed_on)
    ]
    for _, group in groupby(told, key=lambda step: (step.name, step.did) if _is_plain(step) else (step.receipt,)):
        yield _row(list(group))


def _is_plain(step: TaintHop) -> bool:
    return step.did is Did.CALLED and not step.quoted


def _row(steps: Sequence[TaintHop]) -> list[str]:
    step = steps[-1]
    told = ", ".join(one.what for one in steps[:_NAMED]) or _SAID.get(step.did, "")
    if len(steps) > _NAMED:
        told += f" and {len(steps) - _NAMED} more"
    if step.quoted:
        told += f" · {_IN_BATON if step.did is Did.HANDED_ON else _IN_ARGUMENTS}"
    did = paint(step.did, _COLOURS.get(step.did), bold=step.did in _COLOURS)
    return [paint(ending(step.receipt, 6), dim=True), step.name, did, told]
