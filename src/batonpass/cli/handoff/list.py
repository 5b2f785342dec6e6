"""`batonpass handoff list`: handoffs, and the calls that wait for a person."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import click

from batonpass.accounts.held_calls import read_waiting_calls, waiting_facts
from batonpass.audit.meant_ids import get_handoff, get_run
from batonpass.audit.short_ids import ending, telling_length
from batonpass.cli.handoff.held_calls import say_waiting
from batonpass.cli.input.id_types import HANDOFF_ID, RUN_ID
from batonpass.cli.input.ledger_access import opened_store, opened_view, viewed
from batonpass.cli.input.options import ledger_and_json, limit_option
from batonpass.cli.output.list_rows import handoff_state_of
from batonpass.cli.output.terminal import say_json, table, tell
from batonpass.cli.output.units import elapsed
from batonpass.clock import SystemClock
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import RunId, StreamId, time_of
from batonpass.model.base.lifecycle import DELIVERED, State
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import OPEN, is_unverified
from batonpass.records.json_shapes import handoff_shape
from batonpass.records.lineage import read_task
from batonpass.records.source import timed
from batonpass.records.stale_results import describe_input, find_stale
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView

_MINUTE: Final = 60


@click.command("list")
@click.option("--run", "run", metavar="ID", type=RUN_ID, help="Only handoffs of this run.")
@click.option("--root", "root", metavar="ID", type=RUN_ID, help="Only handoffs in the tree of this run.")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only handoffs in this state.")
@click.option("--open", "only_open", is_flag=True, help="Only handoffs that are not over.")
@click.option("--unverified", is_flag=True, help="Only handoffs whose result nobody verified or accepted.")
@click.option("--stale", is_flag=True, help="Only handoffs that used results which were refuted later.")
@click.option("--before", metavar="ID", type=HANDOFF_ID, help="Only handoffs older than this one.")
@limit_option
@click.option("--watch", "watches", is_flag=True, help="Keep running and print a line for each change, until Ctrl-C.")
@ledger_and_json
def list_(
    *,
    run: str | None,
    root: str | None,
    state: str | None,
    only_open: bool,
    unverified: bool,
    stale: bool,
    before: str | None,
    limit: int,
    watches: bool,
    as_json: bool,
) -> None:
    """List handoffs, the latest first.

    With --open or --state held, calls that wait for a person are listed too.
    """
    if run is not None and root is not None:
        raise click.UsageError("give either --run or --root: a run's handoffs are part of its tree")
    if stale and (run or state or only_open or unverified or before or watches):
        raise click.UsageError("--stale looks at whole trees: give --root or nothing with it")
    if stale:
        _list_stale(root, limit=limit, as_json=as_json)
        return
    if unverified and (state or only_open or watches):
        raise click.UsageError("--unverified is about results: give --run, --root or --before with it")
    waits = run is None and before is None and (only_open or state == State.HELD)

    def is_wanted(handoff: Handoff) -> bool:
        return (state is None or handoff.state == state) and (not only_open or handoff.state in OPEN)

    if watches:
        _watch(run, root, is_wanted, limit=limit, calls=waits, as_json=as_json)
        return
    with opened_view() as view:
        tree = None if root is None else get_run(view, root).root
        states = DELIVERED if unverified else _states(state, only_open=only_open)
        listed = _find_handoffs(
            view, states, run=run, root=tree, before=before, limit=None if unverified else limit + 1
        )
        wanted = (one for one in listed if not unverified or is_unverified(view, one))
        found = list(islice(wanted, limit + 1))
        handoffs = found[:limit]
        calls = read_waiting_calls(view, tree) if waits else []
        if as_json:
            facts = [handoff_shape(one, read_task(view, one), _offered_at(view, one)) for one in handoffs]
            say_json([*facts, *map(waiting_facts, calls)])
            return
        _say_list(view, handoffs)
        say_waiting(calls)
    if not handoffs and not calls:
        narrowed = any((run, root, state, only_open, unverified, before))
        tell("no such handoffs" if narrowed else "no handoffs yet")
    elif len(found) > limit:
        tell(f"the latest {limit}; there are more: --limit {limit * 5}")


def _states(state: str | None, *, only_open: bool) -> frozenset[State] | None:
    """Return the wanted states: None for all, and an empty set if the options contradict each other."""
    wanted = None if state is None else frozenset({State(state)})
    if only_open:
        return OPEN if wanted is None else wanted & OPEN
    return wanted


def _find_handoffs(
    view: LedgerView,
    states: frozenset[State] | None,
    *,
    run: str | None,
    root: RunId | None,
    before: str | None,
    limit: int | None,
) -> Iterator[Handoff]:
    if states is not None and not states:
        return iter(())
    return view.find_handoffs(
        parent=None if run is None else get_run(view, run).id,
        root=root,
        states=states or (),
        before=None if before is None else get_handoff(view, before).id,
        limit=limit,
    )


def _list_stale(root: str | None, *, limit: int, as_json: bool) -> None:
    with opened_view() as view:
        found = list(islice(find_stale(view, None if root is None else get_run(view, root).root), limit + 1))
        stale = found[:limit]
        if as_json:
            say_json(
                [
                    {
                        **handoff_shape(one.handoff, read_task(view, one.handoff), _offered_at(view, one.handoff)),
                        "stands_on": [
                            {"item": ref.item, "fate": known.fate, "verdict": known.refutation.receipt}
                            for ref, known in one.inputs
                        ],
                    }
                    for one in stale
                ]
            )
            return
        _say_list(view, [one.handoff for one in stale])
        length = telling_length([one.handoff.id for one in stale])
        for one in stale:
            for sentence in dict.fromkeys(describe_input(view, ref, known) for ref, known in one.inputs):
                tell(f"{ending(one.handoff.id, length)} {one.handoff.to}: {sentence}")
    if not stale:
        tell("no handoff is based on a refuted result")
    elif len(found) > limit:
        tell(f"the latest {limit}; there are more: --limit {limit * 5}")


def _watch(
    run: str | None, root: str | None, is_wanted: Callable[[Handoff], bool], *, limit: int, calls: bool, as_json: bool
) -> None:
    from batonpass.cli.handoff.watch import HandoffWatch  # noqa: PLC0415 - only for --watch

    with opened_store() as store:
        with viewed(store) as view:
            top = None if run is None and root is None else get_run(view, str(run or root))
        parent = None if run is None or top is None else top.id

        def is_here(handoff: Handoff) -> bool:
            return is_wanted(handoff) and parent in {None, handoff.parent}

        tree = None if top is None else top.root
        HandoffWatch(tree, is_here, limit=limit, calls=calls, as_json=as_json).run(store)


def _age(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    return f"{seconds}s" if seconds < _MINUTE else elapsed(timedelta(seconds=seconds))


def _offered_at(view: LedgerView, handoff: Handoff) -> datetime:
    """Return when a handoff was offered; for an import, the time in its transcript."""
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
                handoff_state_of(handoff.state),
                str(handoff.attempt),
                _age(now - _offered_at(view, handoff)),
                "unknown" if task is None else task.first_line,
            ],
        )
    table(rows, header=("handoff", "to", "state", "attempt", "age", "task") if rows else ())
