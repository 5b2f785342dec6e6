"""A chain of grants on the screen: giver and terms of each hop, how much is used, and whether it is still valid."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from batonpass.accounts.handoff.grant_chain import HeldGrant, Revocation
from batonpass.audit.short_ids import ending
from batonpass.cli.output.sheet import quoted, words_of
from batonpass.cli.output.terminal import Painted, paint, say
from batonpass.cli.output.units import moment
from batonpass.guard.grants.limit_accounts import find_left
from batonpass.model.base.ids import HANDOFF, HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.charge import Charged
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.store.port import LedgerView

_LABEL: Final = 14
_WITHOUT: Final = {
    Mode.OBSERVED: "everything is recorded, and only changes to the ledger are blocked",
    Mode.ENFORCED: "its constraints, its budget and the policy are enforced, and they alone limit its calls",
}


def say_chain(chain: tuple[HeldGrant, ...], mode: Mode, at: datetime) -> None:
    """Print the hops of a chain, from the root down, and whether the last one is enforced."""
    for number, held in enumerate(chain):
        terms = held.terms.said
        standing = _standing(held, chain[:number], at)
        say(paint(name_of(held), bold=True), f" · granted by {held.granted_by} · {moment(terms.at)}", standing)
        _say_scope("may", terms.may, held, "nothing itself")
        _say_scope("may delegate", terms.may_delegate, held, "nothing")
        if used := _used(terms.limits, held.used, terms.at, at):
            _row("limits", used)
        if terms.until is not None:
            _row("until", moment(terms.until))
        if terms.max_depth is not None:
            _row("max depth", str(terms.max_depth))
        if held.revoked is not None:
            _row("revoked", paint(revoked_by(held.revoked), "red"))
    if mode is Mode.OBSERVED:
        _row("tried out", "it denies nothing; calls that it would have denied are recorded")


def name_of(held: HeldGrant) -> str:
    """Return the short name of the holder of a grant."""
    return f"{held.terms.said.agent} {ending(held.account)}"


def revoked_by(revocation: Revocation) -> str:
    """Return who revoked a grant, when, and why."""
    return f"by {revocation.by} · {moment(revocation.at)} · {quoted(words_of(revocation.reason))}"


def say_ungranted(view: LedgerView, account: StreamId, mode: Mode) -> None:
    """Print the rights of a run without a grant."""
    known = account.startswith(HANDOFF)
    agent = view.get_handoff(HandoffId(account)).to if known else view.get_run(RunId(account)).agent
    say(paint(f"{agent} {ending(account)}", bold=True), f" · no grant · {mode}")
    say("  ", _WITHOUT[mode])


def _standing(held: HeldGrant, above: tuple[HeldGrant, ...], at: datetime) -> Painted:
    if held.revoked is not None:
        return paint(" · revoked", "red")
    if (fallen := next((one for one in above if one.revoked is not None), None)) is not None:
        return paint(f" · fell with {name_of(fallen)}", "red")
    until = held.terms.said.until
    return paint(" · ended", "red") if until is not None and at >= until else Painted("")


def _say_scope(label: str, scope: Scope, held: HeldGrant, nothing: str) -> None:
    lines = [_permit(permit, held) for permit in scope.permits] or [nothing]
    for number, line in enumerate(lines):
        _row("" if number else label, line)


def _permit(permit: Permit, held: HeldGrant) -> str:
    used = held.permits.get(permit.text)
    told = "" if used is None else _used(permit.limits, used, None, None)
    return f"{permit.text} · {told}" if told else permit.text


def _used(limits: Limits, charged: Iterable[Charged], since: datetime | None, at: datetime | None) -> str:
    """Return how much of each limit is used, such as `3 of 20 calls`."""
    told = ", ".join(f"{one.used} of {one.most} {one.unit}" for one in find_left(limits, charged, since=since, at=at))
    return told and f"{told} used"


def _row(label: str, text: str) -> None:
    say("  ", paint(f"{label:<{_LABEL}}", dim=True) if label else " " * _LABEL, text)
