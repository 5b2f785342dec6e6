"""`batonpass recall`: the outcomes of earlier handoffs of a kind."""

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.ledger_access import opened_store, viewed
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, text_rows
from batonpass.cli.output.units import counted, moment
from batonpass.drift.recall import USUAL, FleetMemory, memory_facts
from batonpass.drift.recall import recall as remember
from batonpass.drift.rollup import keep_up
from batonpass.model.base.ids import AgentId


@click.command()
@click.argument("words", metavar="[WORDS]...", nargs=-1)
@click.option("--agent", metavar="AGENT", help="Only handoffs to this agent.")
@click.option("--kind", metavar="KIND", help="Only this kind of task, as `batonpass drift` names it.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=USUAL, show_default=True, help="At most so many."
)
@ledger_and_json
def command(words: tuple[str, ...], *, agent: str | None, kind: str | None, limit: int, as_json: bool) -> None:
    """Show the outcomes of earlier handoffs: by words of task, agent and kind, by agent, or by kind of task.

    Exits with 1 if nothing is remembered.
    """
    if not words and agent is None and kind is None:
        raise click.UsageError("say words of a task, --agent or --kind")
    whose = None if agent is None else AgentId(agent)
    with opened_store() as store:
        keep_up(store)
        with viewed(store) as view:
            memory = remember(view, kind=kind, agent=whose, words=" ".join(words), limit=limit)
    if as_json:
        say_json(memory_facts(memory))
    else:
        _say(memory)
    if not memory.handoffs:
        click.get_current_context().exit(NO)


def _say(memory: FleetMemory) -> None:
    for one in memory.handoffs:
        say(
            paint(f"{one.agent} {ending(one.handoff)}", bold=True),
            paint(f" · {one.task_kind} · {moment(one.closed_at)}", dim=True),
        )
        told = [("task", one.task if one.task is not None else "erased"), ("came to", one.sentence)]
        told += [("constraint", text) for text in one.constraints]
        told += [("result", one.result)] if one.result else []
        told += [("why", one.reason)] if one.reason else []
        table([row for name, words in told for row in text_rows(name, words)], indent="  ", fold=True)
        say()
    for known in memory.reputations:
        table([[paint(f"{known.agent} · {known.task_kind}: ", bold=True), known.sentence]], gap="", fold=True)
    if not memory.handoffs:
        where = f"none of {counted(memory.looked_at, 'closed handoff')} fits" if memory.looked_at else "no handoff fits"
        say(f"nothing is remembered: {where}; words are looked for in tasks, agents and kinds of task")
