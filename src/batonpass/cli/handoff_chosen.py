"""The handoff that is meant, who acts on it, and how it stands afterwards."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from batonpass.accounts.account import Account, read_account
from batonpass.audit.lookup import ending, get_handoff
from batonpass.cli.handoff_facts import account_facts
from batonpass.cli.handoff_showing import state_of
from batonpass.cli.opening import opened_relay, viewed
from batonpass.cli.options import Command, checked
from batonpass.cli.printing import say, say_json, tell
from batonpass.handoff.handoff import LiveHandoff
from batonpass.model.ids import require_principal
from batonpass.model.lifecycle import WAITING, Carrier
from batonpass.model.run import RunState
from batonpass.relay import Relay


@contextmanager
def chosen(given: str) -> Iterator[tuple[Relay, LiveHandoff]]:
    """Open the ledger, and the handoff in it that is meant."""
    with opened_relay() as relay:
        with viewed(relay) as view:
            found = get_handoff(view, given)
        yield relay, relay.handoff(found.id)


def by_option(command: Command) -> Command:
    """Let a command be told who decides."""
    return click.option(
        "--by",
        metavar="PRINCIPAL",
        callback=checked(lambda given: require_principal("by", given)),
        default=lambda: f"user:{os.environ.get('USER') or 'unknown'}",
        show_default="user:$USER",
        help="Who decides; it is taken as said, and not proven.",
    )(command)


def reason_option(*, required: bool = True) -> Callable[[Command], Command]:
    """Let a command be told why."""
    return click.option("--reason", metavar="TEXT", required=required, help="Why; it is kept.")


def account_of(relay: Relay, live: LiveHandoff) -> Account:
    """Return all that is known of a handoff."""
    with viewed(relay) as view:
        return read_account(view, view.get_handoff(live.id))


def say_done(relay: Relay, live: LiveHandoff, what: str, *, as_json: bool) -> Account:
    """Say how a handoff stands now that somebody did something about it."""
    account = account_of(relay, live)
    if as_json:
        say_json(account_facts(account))
    else:
        known = account.handoff
        say(f"{known.to} {ending(known.id)} · ", state_of(known.state), f" · {what}")
    return account


def is_person() -> bool:
    """Return whether somebody could answer a question now."""
    return sys.stdin.isatty()


def tell_next(account: Account) -> None:
    """Say what happens next to a handoff that waits to be taken."""
    known = account.handoff
    if known.state not in WAITING.values():
        return
    if known.carrier is Carrier.WORKER:
        tell("  a worker will take it")
        return
    root = account.lineage[-1]
    if root.state is RunState.OPEN:
        tell(f'  it waits for its caller: go on with its root run, relay.resume("{root.id}"),')
    else:
        tell(f"  it waits for a caller, and its root run is {root.state}:")
    tell(f'  {"or take it" if root.state is RunState.OPEN else "take it"}, relay.handoff("{known.id}").run(…)')
