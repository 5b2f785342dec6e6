"""Runs: which agent worked on which task."""

import click

from batonpass.cli.options import Session, common
from batonpass.model.lifecycle import RunState
from batonpass.narrate.work import RUN_COLUMNS, run_row
from batonpass.reading.handoffs import read_run_page


@click.group()
def run() -> None:
    """List runs: which agent worked on which task."""


@run.command("list")
@click.option("--agent", metavar="NAME", help="Only runs of this agent.")
@click.option("--state", type=click.Choice([str(state) for state in RunState]), help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="At most so many.")
@click.option("--after", metavar="CURSOR", help="Go on after a page: the `next` that it gave.")
@common
def list_runs(session: Session, *, agent: str | None, state: str | None, limit: int, after: str | None) -> None:
    """List runs, the latest first."""
    with session.reading() as store:
        page = read_run_page(store, state=state, agent=agent, after=after, limit=limit)
    screen = session.screen
    if screen.is_json:
        screen.json(page)
    elif page.items:
        screen.rows(RUN_COLUMNS, [run_row(each) for each in page.items])
        if page.next is not None:
            screen.note(f"there are more: --after {page.next}")
    else:
        screen.note("no run is like that" if agent or state or after else "nothing is recorded yet")
