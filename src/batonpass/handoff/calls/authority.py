"""Whether the grant of a run is in force and covers a call, at every hop from where it began."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from batonpass.errors import GrantDeniedError, GrantError, InvalidValueError, StoreError
from batonpass.guard.authority import explain
from batonpass.guard.limits import account_of
from batonpass.handoff.calls.limits import Counting, find_revoked, read_used
from batonpass.handoff.calls.pending import PendingCall
from batonpass.handoff.calls.tools import PLACE, UNSOUND, ToolCall
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.transfer.grant_terms import require_in_force
from batonpass.model.call import Call, resolved
from batonpass.model.checks import shorten
from batonpass.model.condition import Under
from batonpass.model.ids import StreamId
from batonpass.model.permit import Permit

GRANT: Final = "grant"


def authorise(pending: PendingCall) -> None:
    """Hold a call to the grant of its run and to all above it, unless one of them has ended or was revoked.

    Raises `GrantExpiredError`, `GrantDeniedError` and `GrantRevokedError` where the run is enforced; and whatever else
    goes wrong in here stops such a call too: nobody knows then whether it may be made.
    """
    desk, holding = pending.desk, pending.holding
    bounds = holding.bounds
    pending.counting = Counting(bounds.accounts, line=bounds.line if bounds.chain else ())
    refusal: GrantError | InvalidValueError | None = None
    with pending.judged():
        try:
            pending.call.require_sound()
            if not bounds.chain:
                pending.tried = see(desk, holding, pending.call)
            else:
                require_in_force(bounds, holding.present(desk.clock))
                pending.tried = _resolved(desk, holding, pending.call)
                pending.counting.permits = tuple(authorise_here(desk, holding, pending.tried))
        except (GrantError, InvalidValueError) as error:
            refusal = error
        # Not while it is handled: what it quotes may hold a secret, and would be told as the context of the refusal.
        if refusal is not None:
            pending.refuse(_rule_of(refusal), _in_words(pending, refusal))
            if isinstance(refusal, InvalidValueError):
                pending.tried = None  # it has no form in which a grant could name it, so none is written down
    try:
        pending.used = read_used(desk, pending.counting)
    except StoreError:
        if pending.enforced:
            raise
        return  # a run that is only watched goes on while nothing can be read
    if (revoked := find_revoked(bounds, pending.counting, pending.used)) is not None:
        pending.refuse(GRANT, revoked)


def _rule_of(refusal: GrantError | InvalidValueError) -> str:
    """Return by which rule a call is refused: by its grant, or for what is wrong with the call itself."""
    return refusal.field if isinstance(refusal, InvalidValueError) and refusal.field in UNSOUND else GRANT


def _in_words(pending: PendingCall, refusal: GrantError | InvalidValueError) -> GrantError:
    """Return a refusal that says who tried what, also where what was tried has no form that could be granted.

    It goes to whoever tried, and from there anywhere: what it quotes is without secrets.
    """
    if not isinstance(refusal, InvalidValueError):
        return refusal
    call, agent = pending.call, pending.holding.agent
    clean = pending.desk.redactor.text("target", call.resource)
    # A quotation may be cut off in the middle of a secret, and nothing would be recognised any more.
    why = str(refusal) if clean == call.resource else f"{refusal.field}: {shorten(clean)} has no form that can be named"
    return GrantDeniedError(
        f"{agent} tried {call.action} on something that cannot be granted: {why}",
        agent=agent,
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
    if not paths and not call.acts_on_path:
        return tried  # a tool by its own name leads nowhere
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
