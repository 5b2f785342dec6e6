"""`batonpass taint`: where a text from outside entered, and what it reached."""

from typing import Final

import click

from batonpass.accounts.taint import Step, Tracing, Way, trace_taint
from batonpass.audit.lookup import ending
from batonpass.cli.opening import opened_view
from batonpass.cli.options import json_option, ledger_option
from batonpass.cli.printing import Painted, paint, say, say_json, table
from batonpass.cli.words import counted, exact, moment
from batonpass.model.visible import visible

_COLOURS: Final = {
    Way.HELD: "yellow",
    Way.DENIED: "red",
    Way.APPROVED: "green",
    Way.ENDORSED: "green",
}
_SAID: Final = {
    Way.READ: "it came in here",
    Way.BEGAN_WITH: "it came with the offer",
    Way.REPORTED: "what it reports counts as made of it",
    Way.RESUMED: "with words of a run that knew it",
}
_IN_BATON: Final = "it is in the baton, in quarantine"
_IN_ARGUMENTS: Final = "its words stand in the arguments"


@click.command()
@click.argument("given", metavar="ID|TEXT")
@json_option
@ledger_option
def command(given: str, *, as_json: bool) -> None:
    """Say where a text from outside entered, and every run, handoff and call that it reached.

    ID is the end of the id of a call whose result came from outside, or of an item; or of a run, a handoff or a
    receipt, for all that had reached it; or `last`. TEXT is some of its words, in whatever spelling.
    """
    with opened_view() as view:
        found = trace_taint(view, given)
    if as_json:
        say_json([tracing_facts(tracing) for tracing in found])
        return
    for number, tracing in enumerate(found):
        if number:
            say()
        _say_tracing(tracing)


def _say_tracing(tracing: Tracing) -> None:
    words = "" if tracing.words is None else f": {tracing.words}"
    say(paint("from outside", "yellow", bold=True), f" · {tracing.name} · {tracing.by} · {moment(tracing.entered.at)}")
    if words:
        say(f"  {visible(words.removeprefix(': '))}")
    reached = [
        counted(tracing.runs, "run"),
        counted(tracing.count(Way.HANDED_ON), "handoff"),
        counted(tracing.count(Way.CALLED, Way.HELD), "call"),
    ]
    held = tracing.count(Way.HELD)
    say(f"  reached {', '.join(reached)} · {held} held · {tracing.count(Way.ENDORSED)} endorsed")
    say()
    table([_row(step) for step in tracing.steps], indent="  ")
    say()
    say(paint(f"{tracing.source} · receipt {tracing.entered.id}", dim=True))


def _row(step: Step) -> list[str]:
    told = visible(step.what) or _SAID.get(step.way, "")
    if step.quoted:
        told += f" · {_IN_BATON if step.way is Way.HANDED_ON else _IN_ARGUMENTS}"
    way = paint(step.way, _COLOURS.get(step.way), bold=step.way in _COLOURS)
    return [step.name, way, Painted(told), paint(f"receipt {ending(step.receipt, 6)}", dim=True)]


def tracing_facts(tracing: Tracing) -> dict[str, object]:
    """Return the way of something from outside, for programs."""
    return {
        "source": tracing.source,
        "also": list(tracing.also),
        "name": tracing.name,
        "words": None if tracing.words is None else tracing.words.line,
        "entered": tracing.entered.id,
        "at": exact(tracing.entered.at),
        "run": tracing.run,
        "runs": tracing.runs,
        "steps": [
            {
                "way": step.way,
                "receipt": step.receipt,
                "at": exact(step.at),
                "run": step.run,
                "name": step.name,
                "what": step.what,
                "id": step.id,
                "quoted": step.quoted,
            }
            for step in tracing.steps
        ],
    }
