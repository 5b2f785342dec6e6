"""`batonpass handoff check`: the problems in the baton of a handoff, before anybody acts on it."""

from typing import TYPE_CHECKING

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.handoff.chosen_handoff import chosen
from batonpass.cli.input.id_types import HANDOFF_ID
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say, say_json
from batonpass.model.base.visible import visible

if TYPE_CHECKING:
    from batonpass.guard.baton.problem import Problem


@click.command()
@click.argument("handoff", metavar="ID", type=HANDOFF_ID)
@ledger_and_json
def check(handoff: str, *, as_json: bool) -> None:
    """Check the baton of a handoff, and record nothing.

    Lists every problem that no answer has settled and nobody has waived, those that block first. Exits with 1 if
    something blocks.
    """
    with chosen(handoff) as (_, live):
        known, problems = live.info(), live.problems()
    blocking = sum(problem.blocking for problem in problems)
    if as_json:
        say_json(
            {
                "handoff": known.id,
                "state": known.state,
                "blocking": blocking,
                "problems": [_facts(problem) for problem in problems],
            }
        )
    else:
        counted = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}, {blocking} blocking"
        say(f"{known.to} {ending(known.id)} · {known.state} · {counted if problems else 'no problem found'}")
        for problem in problems:
            say(f"  {_weight(problem)}  {problem.check}: {visible(problem.about)}")
            say(f"            asks the {problem.whom}: {visible(problem.question)}")
    if blocking:
        click.get_current_context().exit(NO)


def _weight(problem: "Problem") -> str:
    if problem.blocking:
        return "blocking"
    return "doubtful" if problem.doubtful else "reported"


def _facts(problem: "Problem") -> dict[str, str]:
    return {
        "check": problem.check,
        "error": problem.error,
        "weight": _weight(problem),
        "about": problem.about,
        "question": problem.question,
        "whom": problem.whom,
        "settled_by": problem.settles,
    }
