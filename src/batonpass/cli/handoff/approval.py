"""Approve and deny what waits: it is shown, somebody answers, and their key signs what they were shown."""

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import click

from batonpass.audit.meant_ids import get_waiting
from batonpass.audit.short_ids import ending
from batonpass.cli.approver import find_own_key
from batonpass.cli.handoff.chosen_handoff import possible_told, say_done, tell_next
from batonpass.cli.input.id_types import HELD_ID
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.input.options import Command, by_option, is_person, json_option, ledger_option, reason_option
from batonpass.cli.input.passphrase import unlock
from batonpass.cli.output.terminal import is_terminal, paint, say, say_json, tell
from batonpass.errors import UnprovenError
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff
from batonpass.records.hold import find_decision
from batonpass.signing.approver_key import Approver

if TYPE_CHECKING:
    from batonpass.relay import Relay

_MORE: Final = "  it waits on: somebody else has to approve it as well"
_QUESTIONS: Final = {True: "Let it go on?", False: "Deny it?"}


def yes_option(command: Command) -> Command:
    """Let a command do without a question."""
    return click.option("--yes", is_flag=True, help="Do not show it and ask; it is then unproven.")(command)


@click.command()
@click.argument("held", metavar="ID", type=HELD_ID)
@by_option
@reason_option(required=False)
@yes_option
@json_option
@ledger_option
def approve(held: str, *, by: str, reason: str | None, yes: bool, as_json: bool) -> None:
    """Let a held handoff go on, or a held call of a run that goes on be made.

    ID is a handoff's, or that of such a call, or its tool. On a terminal all that is material is shown first. If
    whoever decides has an approver's key here, its passphrase is asked for, and the key signs what was shown, for how
    long, and what was decided. Otherwise it is recorded as unproven.
    """
    _decide(held, approved=True, by=by, reason=reason, asks=not yes and not as_json and can_be_asked(), as_json=as_json)


@click.command()
@click.argument("held", metavar="ID", type=HELD_ID)
@by_option
@reason_option()
@yes_option
@json_option
@ledger_option
def deny(held: str, *, by: str, reason: str, yes: bool, as_json: bool) -> None:
    """Do not let a held handoff go on, nor a held call of a run that goes on be made.

    On a terminal it is shown and signed as for an approval.
    """
    _decide(
        held, approved=False, by=by, reason=reason, asks=not yes and not as_json and can_be_asked(), as_json=as_json
    )


def can_be_asked() -> bool:
    """Return whether somebody is there. Raises `UsageError` if they could answer, and could not be shown anything."""
    if is_person() and not is_terminal():
        raise click.UsageError("what is to be decided cannot be shown: the output is no terminal; say --yes, unproven")
    return is_person()


def _decide(held: str, *, approved: bool, by: str, reason: str | None, asks: bool, as_json: bool) -> None:
    with opened_relay() as relay:
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
    """Show what is to be decided and ask; return exactly what was shown, for how long, and who decided."""
    material = waiting.material()
    key, file = find_own_key(relay, by)
    if approved and material.proven and file is None:
        raise UnprovenError(waiting.id, by)  # before anybody reads it for nothing
    since = time.monotonic()
    for line in material.text.splitlines():
        say(line)
    click.confirm(_QUESTIONS[approved], abort=True, err=True)
    looked_ms = round((time.monotonic() - since) * 1000)
    if file is not None:
        return material, looked_ms, unlock(file)
    if key is not None:
        tell(paint(f"the key of {by} is not on this machine, so nothing proves who decided", "yellow"))
    return material, looked_ms, by


def _say_call(call: LiveCall, what: str, facts: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        say_json({"call": call.id, **facts})
        return
    say(f"call {ending(call.id)} · ", paint(what, "green" if facts["approved"] else "red"))
    if facts["waits"]:
        tell(_MORE)
    elif facts["approved"]:
        tell("  its run goes on as soon as it makes the call again")
    else:
        tell("  it is refused for good")
