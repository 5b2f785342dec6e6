"""Approve and deny held handoffs and calls: they are shown, a person answers, and the key signs the shown text."""

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, cast

import click

from batonpass.audit.meant_ids import get_waiting
from batonpass.audit.short_ids import ending
from batonpass.cli.approver import find_own_key
from batonpass.cli.handoff.chosen_handoff import possible_told, say_done, tell_next
from batonpass.cli.handoff.remote_approval import decide_elsewhere
from batonpass.cli.input.id_types import HELD_ID
from batonpass.cli.input.ledger_access import opened_relay, settings, viewed
from batonpass.cli.input.options import (
    Command,
    by_option,
    is_person,
    ledger_and_json,
    reason_option,
)
from batonpass.cli.input.passphrase import unlock
from batonpass.cli.output.terminal import is_terminal, paint, say, say_json, tell
from batonpass.config import CONTROL_PLANES
from batonpass.errors import UnprovenError
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.lifecycle import State
from batonpass.model.base.passkey import find_passkey
from batonpass.model.ledger.run import Handoff
from batonpass.records.hold import find_decision
from batonpass.signing.approver_key import Approver

if TYPE_CHECKING:
    from batonpass.client.remote_relay import RemoteRelay
    from batonpass.relay import Relay

_MORE: Final = "  it still waits: somebody else has to approve it too"
_QUESTIONS: Final = {True: "Approve it?", False: "Deny it?"}


def yes_option(command: Command) -> Command:
    """Add `--yes`."""
    return click.option("--yes", is_flag=True, help="Do not show it and do not ask; the ruling is unproven.")(command)


@click.command()
@click.argument("held", metavar="ID", type=HELD_ID)
@by_option
@reason_option(required=False)
@yes_option
@ledger_and_json
def approve(held: str, *, by: str, reason: str | None, yes: bool, as_json: bool) -> None:
    """Approve a held handoff or a held call.

    ID is a handoff, or a held call of an open run, or its tool. On a terminal, everything relevant is shown first. If
    you have an approver's key on this machine, you are asked for its passphrase; the key signs the text on the screen,
    for how long it was shown, and your ruling. Otherwise the approval is recorded as unproven.
    """
    _decide(held, approved=True, by=by, reason=reason, yes=yes, as_json=as_json)


@click.command()
@click.argument("held", metavar="ID", type=HELD_ID)
@by_option
@reason_option()
@yes_option
@ledger_and_json
def deny(held: str, *, by: str, reason: str, yes: bool, as_json: bool) -> None:
    """Deny a held handoff or a held call.

    On a terminal it is shown and signed in the same way as an approval.
    """
    _decide(held, approved=False, by=by, reason=reason, yes=yes, as_json=as_json)


def can_be_asked() -> bool:
    """Return whether a person can be asked. Raises `UsageError` if one could answer but not see anything."""
    if is_person() and not is_terminal():
        raise click.UsageError("stdout is not a terminal, so nothing can be shown; use --yes for an unproven ruling")
    return is_person()


def _decide(held: str, *, approved: bool, by: str, reason: str | None, yes: bool, as_json: bool) -> None:
    asks = not yes and not as_json and can_be_asked()
    with opened_relay() as relay:
        if settings().ledger.startswith(CONTROL_PLANES):
            elsewhere = cast("RemoteRelay", relay)
            decide_elsewhere(elsewhere, held, approved=approved, by=by, reason=reason, asks=asks, as_json=as_json)
            return
        waiting = _meant(relay, held)
        shown, looked_ms, who = _show_and_ask(relay, waiting, by, approved=approved) if asks else (None, None, by)
        with possible_told(relay, waiting.id) if isinstance(waiting, LiveHandoff) else nullcontext():
            if approved:
                waiting.approve(by=who, reason=reason, shown=shown, looked_ms=looked_ms)
            else:
                waiting.deny(by=who, reason=reason or "", shown=shown, looked_ms=looked_ms)
        what = (
            f"{'approved' if approved else 'denied'} by {by} ({'proven' if isinstance(who, Approver) else 'unproven'})"
        )
        if isinstance(waiting, LiveCall):
            with viewed(relay.store) as view:
                waits = find_decision(view, waiting.id) is None
            facts = {"approved": approved, "by": by, "proven": isinstance(who, Approver), "waits": waits}
            _say_call(waiting, what, facts, as_json=as_json)
            return
        account = say_done(relay, waiting, what, as_json=as_json)
    if approved and account.handoff.state is State.HELD:
        tell(_MORE)
    elif approved:
        tell_next(account)


def _meant(relay: "Relay", given: str) -> LiveHandoff | LiveCall:
    with viewed(relay.store) as view:
        found = get_waiting(view, given)
    return relay.handoff(found.id) if isinstance(found, Handoff) else relay.held_call(found.call)


def _show_and_ask(
    relay: "Relay", waiting: LiveHandoff | LiveCall, by: str, *, approved: bool
) -> tuple[Material, int, str | Approver]:
    """Show the decision sheet and ask; return exactly the sheet shown, for how long, and who decided."""
    material = waiting.material()
    key, file = find_own_key(relay, by)
    if approved and material.proven and file is None:
        raise UnprovenError(waiting.id, by)  # before the person reads it in vain
    since = time.monotonic()
    for line in material.text.splitlines():
        say(line)
    click.confirm(_QUESTIONS[approved], abort=True, err=True)
    looked_ms = round((time.monotonic() - since) * 1000)
    if file is not None:
        return material, looked_ms, unlock(file)
    if key is not None:
        site = find_passkey(key.public_key)
        where = "not on this machine" if site is None else f"a passkey, which signs on the page at {site.site}"
        tell(paint(f"the key of {by} is {where}, so nothing proves who decided", "yellow"))
    return material, looked_ms, by


def _say_call(call: LiveCall, what: str, facts: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        say_json({"call": call.id, **facts})
        return
    say(f"call {ending(call.id)} · ", paint(what, "green" if facts["approved"] else "red"))
    if facts["waits"]:
        tell(_MORE)
    elif facts["approved"]:
        tell("  its run continues when it makes the call again")
    else:
        tell("  this is final")
