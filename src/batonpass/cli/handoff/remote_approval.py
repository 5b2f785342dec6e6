"""Approve and deny where the ledger is elsewhere: the sheet comes from its control plane, and the key signs here."""

import time
from typing import TYPE_CHECKING

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.passphrase import unlock
from batonpass.cli.output.terminal import paint, say, say_json
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.base.ids import PrincipalId
from batonpass.signing.approver_key import Approver, find_approvers, find_approvers_home

if TYPE_CHECKING:
    from batonpass.client.remote_relay import RemoteRelay
    from batonpass.handoff.approvals.decision_sheet import Material


def decide_elsewhere(
    relay: "RemoteRelay", held: str, *, approved: bool, by: str, reason: str | None, asks: bool, as_json: bool
) -> None:
    """Rule on something that is held: shown, asked and signed here if a person can be asked; else unproven."""
    found = _meant(relay, held)
    waiting = relay.handoff(found) if found.startswith("handoff_") else relay.held_call(found)
    shown: Material | None = None
    looked_ms: int | None = None
    who: str | Approver = by
    if asks:
        shown, since = waiting.material(), time.monotonic()
        for line in shown.text.splitlines():
            say(line)
        click.confirm("Approve it?" if approved else "Deny it?", abort=True, err=True)
        looked_ms = round((time.monotonic() - since) * 1000)
        file = next(iter(find_approvers(find_approvers_home(), PrincipalId(by))), None)
        who = by if file is None else unlock(file)
    if approved:
        waiting.approve(by=who, reason=reason, shown=shown, looked_ms=looked_ms)
    else:
        waiting.deny(by=who, reason=reason or "", shown=shown, looked_ms=looked_ms)
    proven = isinstance(who, Approver)
    if as_json:
        say_json({"held": found, "approved": approved, "by": by, "proven": proven})
        return
    what = f"{'approved' if approved else 'denied'} by {by} ({'proven' if proven else 'unproven'})"
    say(f"{found.partition('_')[0]} {ending(found)} · ", paint(what, "green" if approved else "red"))


def _meant(relay: "RemoteRelay", given: str) -> str:
    """Return the waiting call or handoff that is named by its id, the end of its id, its agent or its tool."""
    waiting = relay.waiting()
    found = [one["id"] for one in waiting if given in {one["agent"], one["tool"]} or one["id"].endswith(given)]
    if not found:
        raise NotFoundError("held handoff or call", given)
    if len(found) > 1:
        raise AmbiguousIdError("held handoff or call", given, tuple(found))
    return str(found[0])
