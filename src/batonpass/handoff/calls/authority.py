"""The guard at every call: what is protected, then whether the grant is in force and covers the call."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from batonpass.errors import (
    BatonpassError,
    CallProtectedError,
    GrantDeniedError,
    GuardFailedError,
    InvalidValueError,
)
from batonpass.guard.authority import explain
from batonpass.handoff.calls.limits import Counting
from batonpass.handoff.calls.protected_paths import paths_in
from batonpass.handoff.calls.tools import PLACE, UNSOUND, ToolCall
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.transfer.grant_terms import WOULD_DENY, require_in_force
from batonpass.model.call import Call, resolved
from batonpass.model.charge import whole_of
from batonpass.model.checks import shorten
from batonpass.model.condition import Under
from batonpass.model.grant import Terms
from batonpass.model.ids import StreamId
from batonpass.model.permit import Permit
from batonpass.model.receipt import Mode

WOULD_FAIL: Final = "would_deny.guard"


@dataclass(slots=True)
class Guarded:
    """A call that the guard lets pass: as its grant sees it, what it counts against, and what would have stopped it."""

    counting: Counting
    tried: Call | None = None  # as a grant sees it, or would; None if nothing could grant it
    flags: tuple[str, ...] = ()
    reason: str | None = None  # of what would have stopped it, in words


def guard(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Guarded:
    """Return what the guard makes of a call.

    Raises `CallProtectedError`, and where the run is enforced `GrantExpiredError`, `GrantDeniedError`, and
    `GuardFailedError` for whatever else goes wrong in here: nobody knows then whether it may be made.
    """
    bounds, enforced = holding.bounds, holding.working.mode is Mode.ENFORCED
    guarded = Guarded(Counting(bounds.accounts, line=bounds.line if bounds.chain else ()))
    try:
        _protect(desk, call, enforced=enforced)
        call.require_sound()
        if bounds.chain:
            require_in_force(bounds, holding.present(desk.clock))
            guarded.tried = _resolved(desk, holding, call)
            guarded.counting.permits = tuple(authorise_here(desk, holding, guarded.tried))
        else:
            guarded.tried = see(desk, holding, call)
    except CallProtectedError:
        raise
    except BatonpassError as refusal:
        if enforced:
            raise _in_words(desk, holding, call, refusal) from None
        if isinstance(refusal, InvalidValueError):
            guarded.tried = None  # it has no form in which it could be told
        guarded.flags, guarded.reason = (flag_of(refusal),), str(_in_words(desk, holding, call, refusal))
    except Exception as error:
        if enforced:
            raise GuardFailedError(call.declared.name, f"{type(error).__name__}: {error}") from error
        guarded.flags, guarded.reason = (WOULD_FAIL,), f"{type(error).__name__}: {error}"
    return guarded


def flag_of(refusal: BatonpassError) -> str:
    """Return what the receipt of a run that is only watched says, where an enforced one would have been refused."""
    if isinstance(refusal, InvalidValueError) and refusal.field in UNSOUND:
        return f"would_deny.{refusal.field}"
    return WOULD_DENY


def _in_words(desk: Desk, holding: Holding, call: ToolCall[Any], refusal: BatonpassError) -> BatonpassError:
    """Return a refusal that says who tried what, also where what was tried has no form that could be granted.

    It goes to whoever tried, and from there anywhere: what it quotes is without secrets.
    """
    if not isinstance(refusal, InvalidValueError):
        return refusal
    clean = desk.redactor.text("target", call.resource)
    # A quotation may be cut off in the middle of a secret, and nothing would be recognised any more.
    why = str(refusal) if clean == call.resource else f"{refusal.field}: {shorten(clean)} has no form that can be named"
    return GrantDeniedError(
        f"{holding.agent} tried {call.action} on something that cannot be granted: {why}",
        agent=holding.agent,
        tried=call.action,
        holder=None,
    )


def authorise_here(desk: Desk, holding: Holding, tried: Call) -> Iterator[tuple[StreamId, tuple[Permit, ...]]]:
    """Yield for each hop, from the first on, the permits that let a call be made. Raises `GrantDeniedError`."""
    at = holding.present(desk.clock)
    # Whoever replaced the agent that was asked first is held to the same terms, under its own name.
    *above, last = holding.bounds.terms
    terms = (*above, replace(last, agent=holding.agent))
    for number, one in enumerate(terms, 1):
        right = one.may if number == len(terms) else one.may_delegate
        permits = tuple(right.find_permits(tried, at))
        if not permits:
            told = desk.redactor.text("scope", str(tried))
            raise explain(terms, tried, at, shown=desk.redactor.arguments(tried.arguments), told=told)
        yield account_of(one), permits
    card = desk.cards.get(holding.agent)
    if card is not None and card.most is not None and not card.most.allows(tried, at):
        told = desk.redactor.text("scope", str(tried))
        raise GrantDeniedError(
            f"the card of {holding.agent} lets it hold {card.most}, tried {told}; ask for another agent",
            agent=holding.agent,
            tried=told,
            holder=None,
        )


def account_of(terms: Terms) -> StreamId:
    """Return where what is used under some terms is counted."""
    return whole_of(terms.handoff or terms.root)


def see(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Call | None:
    """Return a call as a grant would see it: what is recorded of it is what a grant can be suggested from."""
    try:
        tried = _resolved(desk, holding, call)
        tried.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return tried


def _resolved(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Call:
    """Return a call with its resource, and the arguments that are paths, as the file system knows them."""
    tried = Call(call.declared.name, call.action, call.resource, call.judged)
    if not call.follows_paths:
        return tried
    place = call.declared.place
    # Where a command runs was followed when it was planned, and is not relative to itself.
    paths = _paths(desk, holding) - (set() if place is None else {PLACE})
    found = resolved(tried, desk.resolve if place is None else partial(_from, desk, place), paths=paths)
    return found if call.acts_on_path else replace(tried, arguments=found.arguments)


def _paths(desk: Desk, holding: Holding) -> set[str]:
    """Return the arguments that some permit, or the card of whoever works, holds to a place."""
    card = desk.cards.get(holding.agent)
    scopes = [scope for terms in holding.bounds.terms for scope in (terms.may, terms.may_delegate)]
    if card is not None and card.most is not None:
        scopes.append(card.most)
    return {
        condition.argument
        for scope in scopes
        for permit in scope.permits
        for condition in permit.where
        if isinstance(condition, Under)
    }


def _from(desk: Desk, place: str, path: str) -> str:
    return desk.resolve(os.path.join(place, path))  # noqa: PTH118 - as it is written, `..` included


def _protect(desk: Desk, call: ToolCall[Any], *, enforced: bool) -> None:
    """Refuse a call that would touch the record. Raises `CallProtectedError`."""
    here = os.getcwd()  # noqa: PTH109 - a text is wanted
    reads, own = call.declared.reads, {"path": call.path, "aim": call.aim}
    targets = () if reads or not enforced else frozenset(paths_in(own, here))
    named = paths_in({"": call.mentioned, **own} if enforced else own, here)
    what = desk.protected.find(named, reads=reads, enforced=enforced, targets=targets)
    if what is not None:
        raise CallProtectedError(call.declared.name, what)
