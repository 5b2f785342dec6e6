"""`batonpass run`: list and show runs."""

from collections.abc import Sequence

import click

from batonpass.accounts.run_facts import find_children, find_report, run_facts
from batonpass.audit.meant_ids import get_run
from batonpass.audit.short_ids import telling_length
from batonpass.cli.input.id_types import AGENT_NAME, RUN_ID
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.input.options import ledger_and_json, limit_option
from batonpass.cli.output.list_rows import call_row, name_of, say_content, state_of, took
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table, tell
from batonpass.cli.output.units import counted, minute, moment
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.call import read_calls
from batonpass.records.json_shapes import run_shape
from batonpass.records.lineage import Tasks, find_ancestors
from batonpass.records.source import run_between, timed, timed_run
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_LINES = 20


@click.group()
def command() -> None:
    """List and show runs. A run is one agent working once on one task."""


@command.command("list")
@click.option("--agent", metavar="NAME", type=AGENT_NAME, help="Only runs of this agent.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option("--before", metavar="ID", type=RUN_ID, help="Only runs older than this one.")
@limit_option
@ledger_and_json
def list_(*, agent: str | None, state: str | None, before: str | None, limit: int, as_json: bool) -> None:
    """List runs, the latest first."""
    with opened_view() as view:
        found = list(
            view.find_runs(
                agent=None if agent is None else AgentId(agent),
                states=() if state is None else (RunState(state),),
                before=None if before is None else get_run(view, before).id,
                limit=limit + 1,
            )
        )
        runs, tasks = found[:limit], Tasks(view)
        told = [timed_run(view, run) for run in runs]
        if as_json:
            say_json([{**run_shape(run, tasks.find(run)), "imported": mark} for run, mark in told])
            return
        length = telling_length([run.id for run in runs])
        table(
            [
                [
                    name_of(run, length),
                    _marked(state_of(run), mark),
                    minute(run.started_at),
                    took(run),
                    tasks.first_line(run),
                ]
                for run, mark in told
            ],
            header=("run", "state", "started", "took", "task") if runs else (),
        )
    if not runs:
        narrowed = "no such runs" if state or before else f"no runs of {agent}"
        tell(narrowed if any((agent, state, before)) else "no runs yet")
    elif len(found) > limit:
        tell(f"the latest {limit}; there are more: --limit {limit * 5}")


@command.command()
@click.argument("run", metavar="ID", type=RUN_ID)
@ledger_and_json
def show(run: str, *, as_json: bool) -> None:
    """Show a run: its task, calls, children, report.

    Also shows every run above it, up to the principal. Erased text is shown as erased.
    """
    with opened_view() as view:
        found = get_run(view, run)
        stored = view.find_receipts(ReceiptQuery(stream=StreamId(found.id)))
        told = timed(view, [read_receipt(one) for one in stored])
        if told.receipts:
            found = run_between(found, told.receipts[0], told.receipts[-1])
        if as_json:
            say_json(run_facts(view, found, told.receipts, told.mark))
        else:
            _say_run(view, found, told.receipts, told.mark)


def _marked(state: Painted, mark: str | None) -> Painted:
    return state if mark is None else Painted(state + paint(f" ({mark.partition(',')[0]})", dim=True))


def _say_run(view: LedgerView, run: Run, receipts: Sequence[Receipt], mark: str | None) -> None:
    tasks = Tasks(view)
    duration = f" · {took(run)}" if run.ended_at is not None else ""
    attempt = f" · attempt {run.attempt}" if run.attempt > 1 else ""
    about = f" · {moment(run.started_at)}{duration}{attempt}"
    marked = "" if mark is None else paint(f" · {mark}", "yellow")
    say(paint(name_of(run), bold=True), " · ", state_of(run), about, marked)
    say(f"  {tasks.first_line(run)}")
    for ancestor in find_ancestors(view, run):
        say(f"  ← {name_of(ancestor)} · ", state_of(ancestor), f" · {tasks.first_line(ancestor)}")
    say(f"  ← {run.principal}")
    calls = [call_row(call) for call in read_calls(view, run, receipts).values()]
    _say_part(counted(len(calls), "call"), calls)
    children = [
        [name_of(child), state_of(child), took(timed_run(view, child)[0]), tasks.first_line(child)]
        for child in find_children(view, run)
    ]
    _say_part(counted(len(children), "child", plural="children"), children)
    task = tasks.find(run)
    if task is not None and task.words is not None and task.first_line != f'"{task.words.strip()}"':
        say()
        say_content(task, at_most=_LINES)
    for text in find_report(view, receipts).values():
        say()
        say_content(text, at_most=_LINES)
    say()
    mode = f" · {receipts[0].mode}" if receipts else ""
    say(paint(f"{run.id} · {counted(len(receipts), 'receipt')}{mode}", dim=True))


def _say_part(title: str, rows: list[list[str]]) -> None:
    if rows:
        say()
        say(paint(title, bold=True))
        table(rows, indent="  ")
