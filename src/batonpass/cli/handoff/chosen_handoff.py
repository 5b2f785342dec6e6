"""The handoff that a command acts on, and its state afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from batonpass.accounts.handoff.account import Account, read_account
from batonpass.audit.meant_ids import get_handoff
from batonpass.audit.short_ids import ending
from batonpass.cli.handoff.handoff_facts import account_facts
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.output.list_rows import handoff_state_of
from batonpass.cli.output.terminal import say, say_json, tell
from batonpass.errors import HandoffEndedError, IllegalTransitionError
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import TRANSITIONS, WAITING, Carrier, HandoffEvent, State
from batonpass.model.ledger.run import Handoff, RunState

if TYPE_CHECKING:
    from batonpass.handoff.live.faces import LiveHandoff
    from batonpass.relay import Relay

JUDGEABLE: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED})
WAIVABLE: Final = frozenset({State.ASKED})  # the problem that was asked about, before the work has begun
JUDGEMENTS: Final = (HandoffEvent.VERIFY, HandoffEvent.REFUTE)

_ACTS: Final = (
    HandoffEvent.APPROVE,
    HandoffEvent.DENY,
    HandoffEvent.ANSWER,
    HandoffEvent.DECLINE,
    HandoffEvent.RETRY,
    HandoffEvent.REPLACE,
    *JUDGEMENTS,
    HandoffEvent.CANCEL,
)


@contextmanager
def chosen(given: str) -> "Iterator[tuple[Relay, LiveHandoff]]":
    """Open the ledger and the chosen handoff in it."""
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            found = get_handoff(view, given)
        with possible_told(relay, found.id):
            yield relay, relay.handoff(found.id)


@contextmanager
def possible_told(relay: "Relay", handoff: HandoffId) -> Iterator[None]:
    """Add the current state and the possible commands to errors about the state of a handoff."""
    try:
        yield
    except (HandoffEndedError, IllegalTransitionError) as error:
        with viewed(relay.store) as view:
            known = view.get_handoff(handoff)
        error.state = known.state
        error.possible = tuple(f"batonpass handoff {name} {ending(known.id)}" for name in possible_acts(known))
        raise


def possible_acts(handoff: Handoff) -> list[str]:
    """Return the commands that are possible in the current state of a handoff."""
    steps = [event for state, event, carrier in TRANSITIONS if (state, carrier) == (handoff.state, handoff.carrier)]
    # A result that has a verdict keeps it; another verdict may be added.
    judged = [*JUDGEMENTS, "waive"] if handoff.state is State.COMPLETED else [*JUDGEMENTS]
    waived = ("check", "waive") if handoff.state is State.ASKED else ()
    later = judged if handoff.state in JUDGEABLE else waived
    return list(dict.fromkeys([*(step for step in _ACTS if step in steps), *later]))


def account_of(relay: "Relay", live: "LiveHandoff") -> Account:
    """Return everything that is known about a handoff."""
    with viewed(relay.store) as view:
        return read_account(view, view.get_handoff(live.id))


def say_done(relay: "Relay", live: "LiveHandoff", what: str, *, as_json: bool) -> Account:
    """Print the state of a handoff after a command."""
    account = account_of(relay, live)
    if as_json:
        say_json(account_facts(account))
    else:
        known = account.handoff
        say(f"{known.to} {ending(known.id)} · ", handoff_state_of(known.state), f" · {what}")
    return account


def tell_next(account: Account) -> None:
    """Say who takes a waiting handoff next."""
    known = account.handoff
    if known.state not in WAITING.values():
        return
    if known.carrier is Carrier.WORKER:
        tell("  a worker will take it")
        return
    root = account.lineage[-1]
    if root.state is RunState.OPEN:
        tell(f'  it waits for its caller: continue its root run with relay.resume("{root.id}"),')
    else:
        tell(f"  it waits for a caller, and its root run is {root.state}:")
    tell(f'  {"or take it" if root.state is RunState.OPEN else "take it"} with relay.handoff("{known.id}").run(…)')
