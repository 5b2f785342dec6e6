"""Check a call against the grant of its run: the grant must be in force, and every hop must cover the call.

This is a module of its own because live calls, proofs for tool servers and files that a command wrote must all get
the same answer.
"""

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
from batonpass.handoff.tools.tool_call import PLACE, UNSOUND, ToolCall
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import StreamId
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.grants.call import Call, resolved
from batonpass.model.grants.permit import Permit

GRANT: Final = "grant"

# A path of plain characters: no pattern, no `~`, no variable. Only such a path may take the short way below.
_PLAIN: Final = re.compile(r"(?![\s-])[\w./+ -]+(?<!\s)", re.ASCII)

_call: Final = unchecked_maker(Call)


def authorise(pending: PendingCall) -> None:
    """Check that every grant from the root to the run is in force, is not revoked, and covers the call.

    Raises `GrantExpiredError`, `GrantDeniedError` and `GrantRevokedError` if the run is enforced. Any other error in
    here also stops an enforced call, because nobody knows then whether the call is allowed.
    """
    bounds = pending.holding.bounds
    pending.counting = Counting(bounds.accounts, line=bounds.line if bounds.chain else ())
    try:
        refusal = _find_refusal(pending)
        # Refuse outside the `except` block that caught it: the first error may quote a secret, and Python would show
        # it as the context of the refusal.
        if refusal is not None:
            pending.refuse(_rule_of(refusal), _in_words(pending, refusal))
            if isinstance(refusal, InvalidValueError):
                pending.tried = None  # no grant can name this call, so none is recorded
    except Exception as error:  # noqa: BLE001 - any error of a guard stops an enforced call
        pending.stop_unjudged(error)
    if not bounds.chain and not bounds.accounts:
        return  # nothing is counted, and nothing can be revoked
    # The commit of the request checks revocations in any case, and nothing can come in between there. So if no limit
    # is counted and the next step is that commit, we do not check here too: a read needs a connection of its own, and
    # after each commit that connection has to read its pages again. Every other refusal runs the check first
    # (`catch_up`), so that a revoked grant is still the reason that the caller is told.
    if pending.enforced and _ends_in_commit(pending):
        pending.put_off = _look_at_use
    else:
        _look_at_use(pending)


def _ends_in_commit(pending: PendingCall) -> bool:
    """Return whether the commit of the request is early enough to find out that a grant was revoked.

    It is not if a limit is counted, or if the caller could get something before that commit: a kept or cached result,
    or a credential.
    """
    declared = pending.declared
    return (
        declared.credential is None
        and declared.cache_for is None
        and pending.holding.resumption is NOTHING
        and not pending.counting.counted()
    )


def _look_at_use(pending: PendingCall) -> None:
    """Note how much is used of each limit that the call counts against; refuse the call if a grant was revoked."""
    try:
        pending.used = read_used(pending.desk, pending.counting)
    except StoreError:
        if pending.enforced:
            raise
        return  # an observed run goes on while the store cannot be read
    if (revoked := find_revoked(pending.holding.bounds, pending.counting, pending.used)) is not None:
        pending.refuse(GRANT, revoked)


def _find_refusal(pending: PendingCall) -> GrantError | InvalidValueError | None:
    """Note the call as a grant sees it, and the permits that allow it. Return the refusal, or None if it is allowed."""
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
    """Return the name of the rule that refuses a call: the grant, or a fault of the call itself."""
    return refusal.field if isinstance(refusal, InvalidValueError) and refusal.field in UNSOUND else GRANT


def _in_words(pending: PendingCall, refusal: GrantError | InvalidValueError) -> GrantError:
    """Return the refusal as a `GrantError` that names the agent and the action, without secrets.

    The agent reads it and may pass it on to anybody, so secrets are taken out of everything that it quotes.
    """
    if not isinstance(refusal, InvalidValueError):
        return refusal
    call, agent = pending.call, pending.holding.agent
    clean = pending.desk.redactor.text("target", call.resource)
    # The error may quote only the first half of a secret, and the redactor would not recognise that half.
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
    """Return the permits that allow a call, for each hop from the root down. Raises `GrantDeniedError`."""
    bounds, place = holding.bounds, tried.place
    terms, found = bounds.terms, []
    # Every hop is checked for each call, not only the run that makes it. So a grant that was widened on the way, by a
    # mistake or by a thief, has no effect. Signatures and the chain were verified when the run began or was resumed.
    for number, one in enumerate(terms, 1):
        right = one.may if number == len(terms) else one.may_delegate
        permits = []
        for permit in right.permits:
            if permit.allows(tried, at, place):
                permits.append(permit)  # noqa: PERF401 - a comprehension is a call, for each hop
        if not permits:
            told = desk.redactor.text("scope", str(tried))
            # The terms name the agent that was asked first. If another one replaced it, the refusal names that one.
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
    """Return a call as a grant would see it, or None if no grant can name it. Grants are suggested from this record."""
    try:
        tried = _resolved(desk, holding, call, looks)
        tried.place  # noqa: B018 - it is read to see whether it can be
    except InvalidValueError:
        return None
    return tried


def _resolved(desk: Desk, holding: Holding, call: ToolCall[Any], looks: Looks) -> Call:
    """Return a call with its links followed: its resource, and each argument that a permit compares as a path."""
    paths, place, path = _paths(desk, holding), call.declared.place, call.path
    if type(call) is ToolCall and path is not None and place is None and not paths and _PLAIN.fullmatch(path):
        # Most calls have one plain path below the working directory. The check for protected files has looked at it.
        here = os.getcwd()  # noqa: PTH109 - a text is wanted
        look = looks.get((here, path)) or look_below(here, path)
        if look is not None:
            # Made unchecked: tool and action were checked when the tool was declared, and the path is not empty.
            return _call(call.declared.name, call.action, desk.place_of(look[0]), call.judged)
    tried = Call(call.declared.name, call.action, call.resource, call.judged)
    if not call.follows_paths:
        return tried
    # The directory of a command was resolved when the command was planned, and it is not relative to itself.
    paths -= set() if place is None else {PLACE}
    if not paths and not call.acts_on_path:
        return tried  # the resource is the name of a tool, not a path
    found = resolved(tried, desk.resolve if place is None else partial(_from, desk, place), paths=paths)
    return found if call.acts_on_path else replace(tried, arguments=found.arguments)


def _paths(desk: Desk, holding: Holding) -> frozenset[str]:
    """Return the names of the arguments that a permit, or the card of the agent, compares as paths."""
    card, found = desk.cards.get(holding.agent), holding.bounds.placed
    return found if card is None or card.most is None else found.union(placed((card.most,)))


def _from(desk: Desk, place: str, path: str) -> str:
    return desk.resolve(os.path.join(place, path))  # noqa: PTH118 - as it is written, `..` included
