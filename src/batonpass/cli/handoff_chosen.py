"""The handoff that is meant, who acts on it, and how it stands afterwards."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from batonpass.accounts.account import Account, read_account
from batonpass.audit.lookup import ending
from batonpass.audit.meant import get_handoff
from batonpass.cli.handoff_facts import account_facts
from batonpass.cli.opening import opened_relay, viewed
from batonpass.cli.options import Command, checked
from batonpass.cli.printing import say, say_json, tell
from batonpass.cli.showing import handoff_state_of
from batonpass.errors import HandoffEndedError, IllegalTransitionError
from batonpass.model.ids import HandoffId, require_principal
from batonpass.model.lifecycle import TRANSITIONS, WAITING, Carrier, Event, State
from batonpass.model.run import Handoff, RunState

if TYPE_CHECKING:
    from batonpass.handoff.handoff import LiveHandoff
    from batonpass.relay import Relay

JUDGEABLE: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED})
JUDGEMENTS: Final = (Event.VERIFY, Event.REFUTE)

_ACTS: Final = (
    Event.APPROVE,
    Event.DENY,
    Event.ANSWER,
    Event.DECLINE,
    Event.RETRY,
    Event.REPLACE,
    *JUDGEMENTS,
    Event.CANCEL,
)


@contextmanager
def chosen(given: str) -> "Iterator[tuple[Relay, LiveHandoff]]":
    """Open the ledger, and the handoff in it that is meant."""
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            found = get_handoff(view, given)
        with possible_told(relay, found.id):
            yield relay, relay.handoff(found.id)


@contextmanager
def possible_told(relay: "Relay", handoff: HandoffId) -> Iterator[None]:
    """Let a refusal that comes from the state of a handoff say which state that is, and what is possible from there."""
    try:
        yield
    except (HandoffEndedError, IllegalTransitionError) as error:
        with viewed(relay.store) as view:
            known = view.get_handoff(handoff)
        error.state = known.state
        error.possible = tuple(f"batonpass handoff {name} {ending(known.id)}" for name in possible_acts(known))
        raise


def possible_acts(handoff: Handoff) -> list[str]:
    """Return what somebody can do about a handoff as it stands, by the names of the commands."""
    steps = [event for state, event, carrier in TRANSITIONS if (state, carrier) == (handoff.state, handoff.carrier)]
    # A result keeps its verdict, and another may stand beside it.
    judged = [*JUDGEMENTS, "waive"] if handoff.state is State.COMPLETED else [*JUDGEMENTS]
    return list(
        dict.fromkeys([*(step for step in _ACTS if step in steps), *(judged if handoff.state in JUDGEABLE else ())])
    )


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


def account_of(relay: "Relay", live: "LiveHandoff") -> Account:
    """Return all that is known of a handoff."""
    with viewed(relay.store) as view:
        return read_account(view, view.get_handoff(live.id))


def say_done(relay: "Relay", live: "LiveHandoff", what: str, *, as_json: bool) -> Account:
    """Say how a handoff stands now that somebody did something about it."""
    account = account_of(relay, live)
    if as_json:
        say_json(account_facts(account))
    else:
        known = account.handoff
        say(f"{known.to} {ending(known.id)} · ", handoff_state_of(known.state), f" · {what}")
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
