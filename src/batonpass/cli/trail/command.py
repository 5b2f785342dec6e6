"""`batonpass trail`: a whole tree of runs in order."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import click

from batonpass.accounts.trail.first_lines import Words
from batonpass.accounts.trail.receipt_lines import Tone, TrailNote
from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_text import TrailRow, render_text
from batonpass.accounts.trail.trail_values import Called, HandoffTold, Happened, RunTold, Trail, WalkTurn, walk
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import LAST
from batonpass.cli.input.id_types import WORK_ID
from batonpass.cli.input.ledger_access import opened_store, opened_view, viewed
from batonpass.cli.input.options import ledger_and_json, output_option, written
from batonpass.cli.output.terminal import Painted, columns, cut, paint, say, say_json, tell, width
from batonpass.cli.output.units import counted, moment
from batonpass.cli.trail.live_events import follow
from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import BRIEF
from batonpass.model.base.ids import HANDOFF, RUN, HandoffId, RunId
from batonpass.model.base.visible import visible
from batonpass.records.json_shapes import call_shape, exact, run_shape
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import told_in_full

_LEAST: Final = 12  # columns that a shortened part keeps
_COLOURS: Final = {Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}


@click.command()
@click.argument("given", metavar="RUN|HANDOFF|last", required=False, type=WORK_ID)
@click.option("--follow", "follows", is_flag=True, help="Keep running and print a line for each event, until Ctrl-C.")
@click.option("--whole", is_flag=True, help="Show the whole tree, not only the part below.")
@click.option("--calls/--no-calls", default=True, help="Show calls, or leave them out.")
@click.option("--mermaid", "form", flag_value="mermaid", help="Print a Mermaid flowchart.")
@click.option("--html", "form", flag_value="html", help="Print one self-contained HTML page.")
@output_option
@ledger_and_json
def command(
    given: str | None,
    *,
    follows: bool,
    whole: bool,
    calls: bool,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show who did what, for whom, in order.

    Shows the part of the tree below a run or a handoff; for a root run and for `last`, the whole tree. Times are
    relative to the first line.

    With --follow, each event is printed as it happens; without an id, every event from now on.
    """
    if follows:
        if form is not None or output is not None:
            raise click.UsageError("--follow prints lines: leave --html, --mermaid and -o out")
        _follow(given, whole=whole, calls=calls, as_json=as_json)
        return
    if given is None:
        raise click.UsageError("give a run, a handoff or `last`; or --follow")
    if as_json and form is not None:
        raise click.UsageError(f"give either --json or --{form}")
    if output is not None and form is None:
        raise click.UsageError("-o needs --html or --mermaid")
    with opened_view() as view:
        trail = _read(view, given, whole=whole)
    if as_json:
        say_json(trail_facts(trail, calls=calls))
    elif form is None:
        _say(trail, calls=calls)
    else:
        pieces = _drawn(trail, form, calls=calls)
        with written(output) as file:
            file.writelines(pieces)
        if output is not None:
            tell(f"wrote {output}: {counted(trail.receipts, 'receipt')} of {trail.root}")


def _follow(given: str | None, *, whole: bool, calls: bool, as_json: bool) -> None:
    with opened_store() as store:
        top: RunId | HandoffId | None = None
        if given is not None:
            with viewed(store) as view:
                meant = get_meant(view, given, (RUN, HANDOFF))
            top = RunId(meant.id) if meant.kind == RUN else HandoffId(meant.id)
            whole = whole or given.strip() == LAST
        follow(store, top, whole=whole, calls=calls, as_json=as_json)


def _read(view: LedgerView, given: str, *, whole: bool) -> Trail:
    if given.strip() == LAST:
        latest = next(islice(view.find_runs(), 1), None)
        if latest is None:
            raise NotFoundError("run", given)
        return read_trail(view, latest.id)
    meant = get_meant(view, given, (RUN, HANDOFF))
    if meant.kind == RUN:
        top: RunId | HandoffId = RunId(meant.id)
        trail = read_trail(view, RunId(meant.id))
    else:
        top = HandoffId(meant.id)
        trail = read_trail(view, view.get_handoff(top).root)
    return trail if whole else trail.below(top)


def _drawn(trail: Trail, form: str, *, calls: bool) -> Iterator[str]:
    # Loaded on demand: most people want text.
    if form == "html":
        from batonpass.accounts.trail.trail_html import render_html  # noqa: PLC0415 - as above

        return render_html(trail, calls=calls)
    from batonpass.accounts.trail.trail_mermaid import render_mermaid  # noqa: PLC0415 - as above

    return (f"{line}\n" for line in render_mermaid(trail, calls=calls))


def _say(trail: Trail, *, calls: bool) -> None:
    room = columns()
    for row in render_text(trail, calls=calls):
        say(_painted(row, room))
    mode = trail.runs[trail.root].mode
    say(paint(f"{trail.root} · {counted(trail.receipts, 'receipt')} · {mode} · {moment(trail.began_at)}", dim=True))


def _painted(row: TrailRow, room: int) -> Painted:
    """Return a line in colours that fits; the arguments of a call are shortened before its outcome."""
    painted, left = [], room
    parts = [(visible(part.text), part) for part in (TrailNote(row.prefix), *row.parts)]
    excess = sum(width(text) for text, _ in parts) - room
    for text, part in parts:
        tone = part.tone
        safe = cut(text, max(_LEAST, width(text) - excess)) if part.gives_way and excess > 0 else text
        shown = cut(safe, left)
        painted.append(paint(shown, _COLOURS.get(tone), dim=tone is Tone.QUIET))
        left -= width(shown)
        if shown != safe or left <= 0:
            break
    return Painted("".join(painted).rstrip())


def trail_facts(trail: Trail, *, calls: bool = True) -> dict[str, object]:
    """Return a trail for programs: flat, because trees may be deep."""
    runs, handoffs = _within(trail)
    return {
        "root": trail.root,
        "top": trail.top,
        "principal": trail.principal,
        "intent": _words(trail.intent),
        "above": [told.run.id for told in trail.above],
        "receipts": trail.receipts,
        "imported": trail.mark,
        "runs": [_run(told, calls=calls) for told in trail.runs.values() if told.run.id in runs],
        "handoffs": [_handoff(told) for told in trail.handoffs.values() if told.handoff.id in handoffs],
    }


def _within(trail: Trail) -> tuple[set[RunId], set[HandoffId]]:
    """Return the runs and handoffs below the top."""
    branches = [step.branch for step in walk(trail, calls=False) if step.turn is WalkTurn.ENTER]
    runs = {branch.run.run.id for branch in branches if branch.run is not None}
    return runs, {branch.handoff.handoff.id for branch in branches if branch.handoff is not None}


def _run(told: RunTold, *, calls: bool) -> dict[str, object]:
    return {
        **run_shape(told.run, None),
        "task": _words(told.task),
        "mode": told.mode,
        "epoch": told.epoch,
        "receipts": told.receipts,
        "events": [_event(event) for event in told.events if calls or not isinstance(event, Called)],
    }


def _handoff(told: HandoffTold) -> dict[str, object]:
    handoff = told.handoff
    return {
        "id": handoff.id,
        "to": handoff.to,
        "state": handoff.state,
        "attempt": handoff.attempt,
        "parent": handoff.parent,
        "carrier": handoff.carrier,
        "deadline": exact(handoff.deadline),
        "task": _words(told.task),
        "may": _words(told.may),
        "mode": told.mode,
        "offered": _event(told.offered),
        "story": [_event(entry) if isinstance(entry, Happened) else {"run": entry} for entry in told.story],
    }


def _event(event: Happened | Called) -> dict[str, object]:
    if isinstance(event, Called):
        words = {name: _words(getattr(event, name)) for name in ("target", "arguments", "message")}
        decided = {"kept_by": event.kept_by, "approval": event.decided}
        return {"kind": "call", **call_shape(event.record, {**words, **decided})}
    body = told_in_full(event.body)
    return {
        "kind": event.body.kind,
        "receipt": event.receipt,
        "at": exact(event.at),
        "body": body,
        "items": [{"part": noted.part, "words": _words(noted.words)} for noted in event.items],
        "words": {name: _words(words) for name, words in event.words.items() if name != BRIEF},
    }


def _words(words: Words | None) -> dict[str, object] | None:
    if words is None:
        return None
    return {"id": words.content, "state": words.found, "text": words.line, "whole": words.whole}
