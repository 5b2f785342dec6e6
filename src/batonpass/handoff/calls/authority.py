"""Whether the grant of a run is in force and covers a call, at every hop from where it began."""

import os
import re
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from batonpass.errors import GrantDeniedError, GrantError, InvalidValueError, StoreError
from batonpass.guard.grants.authority import explain
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.files.path_spellings import Looks, look_below
from batonpass.handoff.grants.limit_use import Counting, find_revoked, read_used
from batonpass.handoff.grants.terms import require_in_force
from batonpass.handoff.history.past_calls import NOTHING
from batonpass.handoff.runtime.bounds import placed
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.tools.declaration import PLACE, UNSOUND, ToolCall
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import StreamId
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.grants.call import Call, resolved
from batonpass.model.grants.permit import Permit

GRANT: Final = "grant"

# A path without anything that could be a sign of something else.
_PLAIN: Final = re.compile(r"(?![\s-])[\w./+ -]+(?<!\s)", re.ASCII)

_call: Final = unchecked_maker(Call)


def authorise(pending: PendingCall) -> None:
    """Hold a call to the grant of its run and to all above it, unless one of them has ended or was revoked.

    Raises `GrantExpiredError`, `GrantDeniedError` and `GrantRevokedError` where the run is enforced; and whatever else
    goes wrong in here stops such a call too: nobody knows then whether it may be made.
    """
    bounds = pending.holding.bounds
    pending.counting = Counting(bounds.accounts, line=bounds.line if bounds.chain else ())
    try:
        refusal = _find_refusal(pending)
        # Not while it is handled: what it quotes may hold a secret, and would be told as the context of the refusal.
        if refusal is not None:
            pending.refuse(_rule_of(refusal), _in_words(pending, refusal))
            if isinstance(refusal, InvalidValueError):
                pending.tried = None  # it has no form in which a grant could name it, so none is written down
    except Exception as error:  # noqa: BLE001 - what a guard meets stops what is enforced
        pending.stop_unjudged(error)
    if not bounds.chain and not bounds.accounts:
        return  # nothing is counted, and nothing can be revoked
    # The commit of the request asks in any case whether something was revoked, and nothing comes in between there. So
    # if nothing is counted and the commit is where this ends, it is not asked here too: to read takes a connection of
    # its own, which has to read its pages anew after each commit. Whatever else would stop the call asks first.
    if pending.enforced and _ends_in_commit(pending):
        pending.put_off = _look_at_use
    else:
        _look_at_use(pending)


def _ends_in_commit(pending: PendingCall) -> bool:
    """Return whether nothing of a call is decided by how much was used, or told before its request is written.

    A result from the record or a credential is given out before that.
    """
    declared = pending.declared
    return (
        declared.credential is None
        and declared.cache_for is None
        and pending.holding.resumption is NOTHING
        and not pending.counting.counted()
    )


def _look_at_use(pending: PendingCall) -> None:
    """Note what was used of all that a call counts against, and refuse it if what it hangs from was revoked."""
    try:
        pending.used = read_used(pending.desk, pending.counting)
    except StoreError:
        if pending.enforced:
            raise
        return  # a run that is only watched goes on while nothing can be read
    if (revoked := find_revoked(pending.holding.bounds, pending.counting, pending.used)) is not None:
        pending.refuse(GRANT, revoked)


def _find_refusal(pending: PendingCall) -> GrantError | InvalidValueError | None:
    """Note what a call tries, as a grant sees it, and by which permits it may; return why it may not."""
    desk, holding, bounds = pending.desk, pending.holding, pending.holding.bounds
    try:
        pending.call.require_sound()
        if not bounds.chain:
            pending.tried = see(desk, holding, pending.call, pending.looks)
        else:
            at = pending.present()
            require_in_force(bounds, at)
            pending.tried = _resolved(desk, holding, pending.call, pending.looks)
            pending.counting.permits = authorise_here(desk, holding, pending.tried, at)
    except (GrantError, InvalidValueError) as error:
        return error
    return None


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


def authorise_here(
    desk: Desk, holding: Holding, tried: Call, at: datetime
) -> tuple[tuple[StreamId, tuple[Permit, ...]], ...]:
    """Return for each hop, from the first on, the permits that let a call be made. Raises `GrantDeniedError`."""
    bounds, place = holding.bounds, tried.place
    terms, found = bounds.terms, []
    # Every hop is asked for each call, and not only whoever makes it: a grant that was widened on its way, by whatever
    # mistake or theft, has no effect. Signatures and the chain were verified when the run was begun or taken up.
    for number, one in enumerate(terms, 1):
        right = one.may if number == len(terms) else one.may_delegate
        permits = []
        for permit in right.permits:
            if permit.allows(tried, at, place):
                permits.append(permit)  # noqa: PERF401 - a comprehension is a call, for each hop
        if not permits:
            told = desk.redactor.text("scope", str(tried))
            # Whoever replaced the agent that was asked first is held to the same terms, under its own name.
            named = (*terms[:-1], replace(terms[-1], agent=holding.agent))
            raise explain(named, tried, at, shown=desk.redactor.arguments(tried.arguments), told=told)
        found.append((bounds.counted_at[number - 1], tuple(permits)))
    card = desk.cards.get(holding.agent)
    if card is not None and card.most is not None and not card.most.allows(tried, at):
        told = desk.redactor.text("scope", str(tried))
        raise GrantDeniedError(
            f"the card of {holding.agent} lets it hold {card.most}, tried {told}; ask for another agent",
            agent=holding.agent,
            tried=told,
            holder=None,
        )
    return tuple(found)


def see(desk: Desk, holding: Holding, call: ToolCall[Any], looks: Looks) -> Call | None:
    """Return a call as a grant would see it: what is recorded of it is what a grant can be suggested from."""
    try:
        tried = _resolved(desk, holding, call, looks)
        tried.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return tried


def _resolved(desk: Desk, holding: Holding, call: ToolCall[Any], looks: Looks) -> Call:
    """Return a call with its resource, and the arguments that are paths, as the file system knows them."""
    paths, place, path = _paths(desk, holding), call.declared.place, call.path
    if type(call) is ToolCall and path is not None and place is None and not paths and _PLAIN.fullmatch(path):
        # As most are: one plain path below where we stand, which was looked at when it was asked what is protected.
        here = os.getcwd()  # noqa: PTH109 - a text is wanted
        look = looks.get((here, path)) or look_below(here, path)
        if look is not None:
            # Its tool and action were checked when it was declared, and this path is text that has something in it.
            return _call(call.declared.name, call.action, desk.place_of(look[0]), call.judged)
    tried = Call(call.declared.name, call.action, call.resource, call.judged)
    if not call.follows_paths:
        return tried
    # Where a command runs was followed when it was planned, and is not relative to itself.
    paths -= set() if place is None else {PLACE}
    if not paths and not call.acts_on_path:
        return tried  # a tool by its own name leads nowhere
    found = resolved(tried, desk.resolve if place is None else partial(_from, desk, place), paths=paths)
    return found if call.acts_on_path else replace(tried, arguments=found.arguments)


def _paths(desk: Desk, holding: Holding) -> frozenset[str]:
    """Return the arguments that some permit, or the card of whoever works, holds to a place."""
    card, found = desk.cards.get(holding.agent), holding.bounds.placed
    return found if card is None or card.most is None else found.union(placed((card.most,)))


def _from(desk: Desk, place: str, path: str) -> str:
    return desk.resolve(os.path.join(place, path))  # noqa: PTH118 - as it is written, `..` included
