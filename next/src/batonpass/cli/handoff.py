"""Handoffs: show one, try one again."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from getpass import getuser

import click

from batonpass.api import handoffs as acts
from batonpass.cli.find import find_call, find_handoff
from batonpass.cli.options import Session, common
from batonpass.errors import InvalidValueError
from batonpass.model.ids import short
from batonpass.model.lifecycle import State
from batonpass.narrate.tokens import duration, name
from batonpass.narrate.work import narrate_handoff, narrate_retry
from batonpass.reading.handoffs import HandoffView, read_handoff


@click.group()
def handoff() -> None:
    """Show a handoff, or try it again."""


@handoff.command()
@click.argument("handoff_id", metavar="ID")
@common
def show(session: Session, *, handoff_id: str) -> None:
    """Show a handoff: its task, who gave it and for whom, each attempt with its calls, what is in doubt."""
    with session.reading() as store:
        view = read_handoff(store, find_handoff(store, handoff_id))
    if session.screen.is_json:
        session.screen.json(view)
    else:
        session.screen.lines(narrate_handoff(view))


@handoff.command()
@click.argument("handoff_id", metavar="ID")
@click.option("--repeat", metavar="CALL", multiple=True, help="A call in doubt that is to be made again.")
@click.option("--skip", metavar="CALL", multiple=True, help="A call in doubt that is taken as done.")
@click.option("--by", metavar="PRINCIPAL", help="Who decides; recorded as given.  [default: user:NAME]")
@click.option("--reason", metavar="TEXT", default="", help="Why; it is recorded.")
@click.option("--yes", is_flag=True, help="Do not ask, also if its last attempt has not ended.")
@common
def retry(
    session: Session,
    *,
    handoff_id: str,
    repeat: Sequence[str],
    skip: Sequence[str],
    by: str | None,
    reason: str,
    yes: bool,
) -> None:
    """Try a handoff again, and nothing else: what it finished is kept, and no call is made twice unasked.

    A CALL is the last letters of its id, or the name of its tool.
    """
    with session.reading() as store:
        before = read_handoff(store, find_handoff(store, handoff_id))
        label = f"{name(before.to).text} {short(before.id)}"
        request = acts.Retry(
            handoff=before.id,
            by=by or _own_name(),
            reason=reason,
            repeat=tuple(find_call(before.in_doubt, call, label) for call in repeat),
            skip=tuple(find_call(before.in_doubt, call, label) for call in skip),
        )
        if before.state == State.RUNNING and not yes:
            _confirm(session, before, label)
        with session.acting() as port:
            port.do(acts.retry, request)
        after = read_handoff(store, before.id)
    screen = session.screen
    if screen.is_json:
        screen.json(after)
    elif not screen.is_quiet:
        screen.lines(narrate_retry(before, after))
        parent = after.chain[-1]
        screen.note(f"it goes on when the program of {name(parent.agent).text} {short(parent.run)} accepts it")
        if after.in_doubt:
            screen.note("what is in doubt it may not make again, until a retry says --skip or --repeat")


def _own_name() -> str:
    try:
        return f"user:{getuser()}"
    except (KeyError, OSError):  # no such user, and no variable that names one
        raise InvalidValueError("--by is missing: who decides? (--by user:ana)") from None


def _confirm(session: Session, handoff: HandoffView, label: str) -> None:
    """Ask before an attempt is ended that may be alive."""
    quiet_us = int((datetime.now(UTC) - handoff.attempts[-1].last_at).total_seconds() * 1_000_000)
    warning = f"{label} is running; it wrote its last receipt {duration(max(0, quiet_us))} ago"
    if session.screen.is_json or not sys.stdin.isatty():
        raise InvalidValueError(f"{warning}. A retry ends that attempt: give --yes if its process is gone")
    click.echo(f"{warning}. A retry ends that attempt.", err=True)
    click.confirm("Try it again?", abort=True, err=True)
