"""`batonpass handoff`: what was delegated, what came of it, and what to do next."""

from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import click

from batonpass.accounts.account import OPEN, read_account
from batonpass.accounts.sources import timed
from batonpass.audit.carriage import prove_carriage
from batonpass.audit.lookup import ending, get_handoff, get_run, read_receipt, read_task, telling_length
from batonpass.cli.exits import NO
from batonpass.cli.handoff_acting import COMMANDS
from batonpass.cli.handoff_brief import show_briefing
from batonpass.cli.handoff_deciding import approve, deny
from batonpass.cli.handoff_endorsing import endorse
from batonpass.cli.handoff_facts import account_facts, handoff_facts
from batonpass.cli.handoff_proving import carriage_facts, say_carriage
from batonpass.cli.handoff_sheet import room
from batonpass.cli.handoff_showing import compose, state_of
from batonpass.cli.handoff_waiting import read_waiting_calls, say_waiting, waiting_facts
from batonpass.cli.opening import opened_view
from batonpass.cli.options import json_option, ledger_option
from batonpass.cli.printing import say, say_json, table, tell
from batonpass.cli.words import elapsed
from batonpass.clock import SystemClock
from batonpass.errors import NotFoundError
from batonpass.model.ids import StreamId, time_of
from batonpass.model.lifecycle import State
from batonpass.model.run import Handoff
from batonpass.store.port import LedgerView

_MINUTE: Final = 60


@click.group()
def command() -> None:
    """Look at what was delegated, answer, judge, and try again what failed.

    A handoff is one task that a run gave to an agent. An ID is its last characters, `last`, or the agent's name.
    """


@command.command("list")
@click.option("--run", "run", metavar="ID", help="Only what this run handed off.")
@click.option("--root", "root", metavar="ID", help="Only the tree that this run belongs to.")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only those in this state.")
@click.option("--open", "only_open", is_flag=True, help="Only those that are not over.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many."
)
@json_option
@ledger_option
def list_(*, run: str | None, root: str | None, state: str | None, only_open: bool, limit: int, as_json: bool) -> None:
    """List handoffs, the latest first.

    With --open or --state held, the calls of roots that wait for somebody are listed as well.
    """
    if run is not None and root is not None:
        raise click.UsageError("a run hands off within its tree: give --run or --root")
    with opened_view() as view:
        wanted = (
            handoff
            for handoff in view.find_handoffs(
                parent=None if run is None else get_run(view, run).id,
                root=None if root is None else get_run(view, root).root,
            )
            if (state is None or handoff.state == state) and (not only_open or handoff.state in OPEN)
        )
        found = list(islice(wanted, limit + 1))
        handoffs = found[:limit]
        waits = run is None and (only_open or state == State.HELD)
        calls = read_waiting_calls(view, None if root is None else get_run(view, root).root) if waits else []
        if as_json:
            facts = [handoff_facts(one, read_task(view, one), _offered_at(view, one)) for one in handoffs]
            say_json([*facts, *map(waiting_facts, calls)])
            return
        _say_list(view, handoffs)
        say_waiting(calls)
    if not handoffs and not calls:
        narrowed = any((run, root, state, only_open))
        tell("no such handoffs" if narrowed else "no handoffs yet")
    elif len(found) > limit:
        tell(f"the latest {limit}; there are more: --limit {limit * 5}")


@command.command()
@click.argument("handoff", metavar="ID")
@click.option("--proof", is_flag=True, help="Prove that intent, constraints and exclusions arrived unchanged.")
@json_option
@ledger_option
def show(handoff: str, *, proof: bool, as_json: bool) -> None:
    """Show a handoff on one screen.

    Who, for whom, what exactly, with which rights, what came of it, and what stays open.

    With --proof, every hop from the root is followed through receipts alone; exits with 1 if something was lost.
    """
    with opened_view() as view:
        found = get_handoff(view, handoff)
        if proof:
            carriage = prove_carriage(view, found)
            if as_json:
                say_json(carriage_facts(carriage))
            else:
                say_carriage(carriage)
            if not carriage.whole:
                click.get_current_context().exit(NO)
            return
        account = read_account(view, found)
    if as_json:
        say_json(account_facts(account))
        return
    for line in compose(account, columns=room()):
        say(line)


for each in (show_briefing, approve, deny, *COMMANDS, endorse):
    command.add_command(each)


def _age(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    return f"{seconds}s" if seconds < _MINUTE else elapsed(timedelta(seconds=seconds))


def _offered_at(view: LedgerView, handoff: Handoff) -> datetime:
    """Return when something was handed off, as an import says it."""
    try:
        offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    except NotFoundError:
        return time_of(handoff.id)
    found = timed(view, [offer])
    return found.receipts[0].at if found.imported else time_of(handoff.id)


def _say_list(view: LedgerView, handoffs: list[Handoff]) -> None:
    length = telling_length([handoff.id for handoff in handoffs])
    now = SystemClock().now()
    rows = []
    for handoff in handoffs:
        task = read_task(view, handoff)
        rows.append(
            [
                ending(handoff.id, length),
                handoff.to,
                state_of(handoff.state),
                str(handoff.attempt),
                _age(now - _offered_at(view, handoff)),
                "unknown" if task is None else task.first_line,
            ],
        )
    table(rows, header=("handoff", "to", "state", "attempt", "age", "task") if rows else ())
