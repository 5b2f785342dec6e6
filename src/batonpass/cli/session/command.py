"""`batonpass session`: the state that a session passes on to the next one, and the changes since the last."""

from datetime import UTC, datetime
from itertools import islice
from typing import Final

import click

from batonpass.accounts.session_diff import Change, SessionTurn, compare_states
from batonpass.accounts.session_load import weigh_session
from batonpass.audit.meant_ids import get_session
from batonpass.audit.session_roots import before, find_roots, find_sessions, find_stops
from batonpass.audit.short_ids import ending, telling_length
from batonpass.cli.input.id_types import SESSION_ID
from batonpass.cli.input.ledger_access import opened_relay, opened_view
from batonpass.cli.input.options import by_option, ledger_and_json, limit_option, reason_option
from batonpass.cli.output.list_rows import name_of, state_of
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted, elapsed, minute
from batonpass.cli.session.session_view import load_facts, say_loads, say_state, session_facts, state_facts
from batonpass.handoff.sessions.session_state import read_session
from batonpass.model.base.ids import SessionId
from batonpass.model.base.visible import visible
from batonpass.model.baton.contradiction import words_of
from batonpass.model.baton.session import SessionState, Stop, session_of
from batonpass.records.lineage import Tasks
from batonpass.records.remarks.pruned import mark_of
from batonpass.store.port import LedgerView

_SIGNS: Final = {
    SessionTurn.ADDED: ("+", "green"),
    SessionTurn.GONE: ("-", "red"),
    SessionTurn.CHANGED: ("~", "yellow"),
    SessionTurn.REOPENED: ("?", "red"),
}


@click.group()
def command() -> None:
    """List, show and compare sessions. A session is one or more root runs that continue each other."""


@command.command("list")
@limit_option
@ledger_and_json
def list_(limit: int, *, as_json: bool) -> None:
    """List sessions, the latest first."""
    with opened_view() as view:
        found = list(islice(find_sessions(view), limit + 1))
        shown, tasks = found[:limit], Tasks(view)
        if as_json:
            say_json([session_facts(session, roots) for session, roots in shown])
            return
        length = telling_length([session for session, _ in shown])
        table(
            [
                [
                    ending(session, length),
                    state_of(roots[-1]),
                    minute(roots[-1].started_at),
                    counted(len(roots), "root"),
                    roots[-1].series or "",
                    tasks.first_line(roots[-1]),
                ]
                for session, roots in shown
            ],
            header=("session", "state", "last began", "roots", "series", "intent") if shown else (),
        )
    if not shown:
        tell("no sessions yet")
    elif len(found) > limit:
        tell(f"the latest {limit}; there are more: --limit {limit * 5}")


@command.command()
@click.argument("session", metavar="ID|SERIES|last", type=SESSION_ID)
@ledger_and_json
def show(session: str, *, as_json: bool) -> None:
    """Show the state that a session would pass on if it were resumed now.

    Conditions of decisions are evaluated, except checks: those run when a session is resumed.
    """
    with opened_view() as view:
        found = get_session(view, session)
        roots = find_roots(view, found)
        state = _state(view, find_stops(view, roots), found)
        if as_json:
            say_json({**session_facts(found, roots), **state_facts(state)})
            return
        last = roots[-1]
        about = f"{counted(len(roots), 'root')}{f' · series {last.series}' if last.series else ''} · {last.principal}"
        say(paint(f"session {ending(found)}", bold=True), f" · {about}")
        say(f"  {name_of(last)} · ", state_of(last), f" · {Tasks(view).first_line(last)}")
        say_state(state)
        say()
        say(paint(f"{found} · as of now; checks run when it is resumed", dim=True))


@command.command()
@click.argument("session", metavar="[ID|SERIES|last]", required=False, type=SESSION_ID)
@limit_option
@ledger_and_json
def load(session: str | None, limit: int, *, as_json: bool) -> None:
    """Show how much state sessions accumulate, and how old it is.

    Lists the items that each session would pass on now, and those after its first root. Also lists decisions that are
    still in use although their reason is gone: it was never given, it was erased, or a condition can no longer be
    checked.
    """
    with opened_view() as view:
        if session is None:
            found = list(islice(find_sessions(view), limit))
        else:
            named = get_session(view, session)
            found = [(named, find_roots(view, named))]
        now = datetime.now(UTC)
        loads = [weigh_session(view, one, roots, now) for one, roots in found]
    if as_json:
        say_json([load_facts(one) for one in loads])
        return
    say_loads(loads)


@command.command()
@click.argument("session", metavar="ID|SERIES|last", type=SESSION_ID)
@click.argument("other", metavar="[ID]", required=False, type=SESSION_ID)
@ledger_and_json
def diff(session: str, other: str | None, *, as_json: bool) -> None:
    """Show the changes since the last session, or between two sessions.

    Compares decisions, thresholds, open questions and verified outputs: added, gone, changed, open again.
    """
    with opened_view() as view:
        new = _stops(view, session if other is None else other)
        old = before(view, new[-1].root) if other is None else _stops(view, session)
        was, now = _state(view, old), _state(view, new)
        changes = compare_states(was, now)
        if as_json:
            say_json(
                {
                    "before": [stop.root for stop in old],
                    "after": [stop.root for stop in new],
                    "changes": changes,
                }
            )
            return
        _say_since(view, old, new)
    for change in changes:
        _say_change(change)
    if not changes:
        tell("nothing changed")


@command.command()
@click.argument("session", metavar="ID|SERIES|last", type=SESSION_ID)
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--older-than", metavar="TIME", help="Take out items that were first said longer ago, such as 90d.")
@by_option
@reason_option()
@ledger_and_json
def prune(session: str, items: tuple[str, ...], *, older_than: str | None, by: str, reason: str, as_json: bool) -> None:
    """Take items out of the state of a session; only a person may.

    An ITEM is the id of an item, its last characters, or the first words of its text. Nothing is erased: the item stays
    in the record, but the next session does not inherit it. If it is said again later, it is inherited again. With
    --older-than, constraints and exclusions stay: name them, or relax them in the session that recorded them.
    """
    with opened_relay() as relay:
        taken = relay.prune_session(session, items, by=by, reason=reason, older_than=older_than)
        with relay.store.view() as view:
            state = _state(view, find_stops(view, find_roots(view, get_session(view, session))))
    if as_json:
        say_json({"taken_out": [mark_of(value) for value in taken], **state_facts(state)})
        return
    for value in taken:
        say(paint("- ", "red"), visible(words_of(value)))
    tell(f"{counted(len(taken), 'item')} taken out by {by} (unproven); {counted(state.items, 'item')} still come along")


def _stops(view: LedgerView, given: str) -> list[Stop]:
    return find_stops(view, find_roots(view, get_session(view, given)))


def _state(view: LedgerView, stops: list[Stop], session: SessionId | None = None) -> SessionState:
    at = datetime.now(UTC)
    return read_session(view, stops, at, session=session) if stops else SessionState(at=at)


def _say_since(view: LedgerView, old: list[Stop], new: list[Stop]) -> None:
    tasks, last = Tasks(view), view.get_run(new[-1].root)
    if not old:
        say(paint(f"session {ending(session_of(last))}", bold=True), " started new: nothing was passed on")
        return
    first = view.get_run(old[-1].root)
    apart = elapsed(abs(last.started_at - first.started_at))
    say(
        paint(name_of(last), bold=True),
        f" · {tasks.first_line(last)} · since {name_of(first)}, {apart} before: {tasks.first_line(first)}",
    )


def _say_change(change: Change) -> None:
    sign, colour = _SIGNS[change.turn]
    said = {
        SessionTurn.ADDED: change.after,
        SessionTurn.GONE: f"was: {change.before}",
        SessionTurn.CHANGED: f"{change.before} → {change.after}",
        SessionTurn.REOPENED: f"open again: {change.after}",
    }[change.turn]
    say(paint(f"{sign} {change.topic}", colour), f": {change.what} · {said}")
