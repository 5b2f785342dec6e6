"""The guard at every call: what is protected, then whether the grant is in force and covers the call."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from batonpass.errors import (
    BatonpassError,
    CallProtectedError,
    GrantDeniedError,
    GuardFailedError,
    InvalidValueError,
)
from batonpass.guard.authority import explain
from batonpass.handoff.desk import Desk
from batonpass.handoff.granting import require_in_force
from batonpass.handoff.holding import Holding
from batonpass.handoff.limiting import Counting
from batonpass.handoff.protecting import paths_in
from batonpass.handoff.tools import ToolCall
from batonpass.model.call import Call, resolved
from batonpass.model.charge import whole_of
from batonpass.model.condition import Under
from batonpass.model.grant import Terms
from batonpass.model.ids import StreamId
from batonpass.model.permit import Permit
from batonpass.model.receipt import Mode


def guard(desk: Desk, holding: Holding, call: ToolCall[Any]) -> tuple[Call | None, Counting]:
    """Return a call as its grant sees it, and what it counts against; None where there is no grant.

    Raises `CallProtectedError`, `GrantExpiredError` and `GrantDeniedError`; and, where the run is enforced,
    `GuardFailedError` for whatever else goes wrong in here: nobody knows then whether it may be made.
    """
    bounds = holding.bounds
    counting = Counting(bounds.accounts, line=bounds.line if bounds.chain else ())
    if holding.working.mode is not Mode.ENFORCED:
        _protect(desk, call, enforced=False)
        return None, counting
    try:
        _protect(desk, call, enforced=True)
        if not bounds.chain:
            return None, counting
        require_in_force(bounds, desk.clock.now())
        tried = _resolved(desk, holding, call)
        counting.permits = tuple(_authorise(desk, holding, tried))
    except BatonpassError as refusal:
        if isinstance(refusal, InvalidValueError):
            raise GrantDeniedError(
                f"{holding.agent} tried {call.action} on something that cannot be granted: {refusal}",
                agent=holding.agent,
                tried=call.action,
                holder=None,
            ) from None
        raise
    except Exception as error:
        raise GuardFailedError(call.declared.name, f"{type(error).__name__}: {error}") from error
    return tried, counting


def _authorise(desk: Desk, holding: Holding, tried: Call) -> Iterator[tuple[StreamId, tuple[Permit, ...]]]:
    """Yield for each hop, from the first on, the permits that let a call be made. Raises `GrantDeniedError`."""
    at = desk.clock.now()
    # Whoever replaced the agent that was asked first is held to the same terms, under its own name.
    *above, last = holding.bounds.terms
    terms = (*above, replace(last, agent=holding.agent))
    for number, one in enumerate(terms, 1):
        right = one.may if number == len(terms) else one.may_delegate
        permits = tuple(right.find_permits(tried, at))
        if not permits:
            raise explain(terms, tried, at)
        yield account_of(one), permits
    card = desk.cards.get(holding.agent)
    if card is not None and card.most is not None and not card.most.allows(tried, at):
        raise GrantDeniedError(
            f"the card of {holding.agent} lets it hold {card.most}, tried {tried}; ask for another agent",
            agent=holding.agent,
            tried=str(tried),
            holder=None,
        )


def account_of(terms: Terms) -> StreamId:
    """Return where what is used under some terms is counted."""
    return whole_of(terms.handoff or terms.root)


def _resolved(desk: Desk, holding: Holding, call: ToolCall[Any]) -> Call:
    """Return a call with its resource, and the arguments that are paths, as the file system knows them."""
    tried = Call(call.declared.name, call.action, call.resource, call.arguments)
    paths = {
        condition.argument
        for terms in holding.bounds.terms
        for scope in (terms.may, terms.may_delegate)
        for permit in scope.permits
        for condition in permit.where
        if isinstance(condition, Under)
    }
    return resolved(tried, desk.resolve, paths=paths) if call.acts_on_path else tried


def _protect(desk: Desk, call: ToolCall[Any], *, enforced: bool) -> None:
    """Refuse a call that would touch the record. Raises `CallProtectedError`."""
    named = call.arguments if enforced else {"path": call.path}
    what = desk.protected.find(paths_in(named, os.getcwd()), reads=call.declared.reads, enforced=enforced)  # noqa: PTH109 - a text is wanted
    if what is not None:
        raise CallProtectedError(call.declared.name, what)
