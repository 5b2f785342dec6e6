"""Authority: whether the terms of a chain allow a call, and if not, why, in words that a model can act on.

A call needs the `may` of the last terms and the `may_delegate` of all terms above. So every grant is intersected with
all grants above it, and one that was widened on the way, by mistake or theft, has no effect.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from batonpass.errors import GrantDeniedError
from batonpass.model.base.checks import shorten
from batonpass.model.base.visible import visible
from batonpass.model.grants.call import Call
from batonpass.model.grants.condition import argument_of, holds, is_absent
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.permit import Permit, spell_time
from batonpass.model.grants.scope import Scope

_SHOWN: Final = 5


def authorise(terms: Sequence[Terms], call: Call, at: datetime) -> tuple[Permit, ...]:
    """Return the permits that allow a call, one for each hop from the first. Raises `GrantDeniedError`.

    If several permits of a hop allow it, this is the first of them. Earlier uses are not counted here: a caller that
    counts takes the first permit that has room.
    """
    *above, last = terms
    permits = [one.may_delegate.find_permit(call, at) for one in above]
    permits.append(last.may.find_permit(call, at))
    found = tuple(permit for permit in permits if permit is not None)
    if len(found) < len(terms):
        raise explain(terms, call, at)
    return found


def explain(
    terms: Sequence[Terms],
    call: Call,
    at: datetime,
    *,
    shown: Mapping[str, object] | None = None,
    told: str | None = None,
) -> GrantDeniedError:
    """Return the error for a denied call: the agent's permits, the attempted call, and who above could delegate it.

    `shown` and `told` replace the arguments and the call in the text if the originals must not be shown.
    """
    tried = str(call) if told is None else told
    *above, last = terms
    holder = _find_holder(above, call, at)
    if last.may.allows(call, at):
        stops = next(one for one in reversed(above) if not one.may_delegate.allows(call, at))
        problem = (
            f"{last.agent} may {tried}, but {stops.agent} may not delegate it: "
            f"{stops.agent} may delegate {_shown(stops.may_delegate, call)}; {_whom(holder, last)}"
        )
    else:
        missed = _missed(last, call, at, call.arguments if shown is None else shown)
        problem = f"{last.agent} may {_shown(last.may, call)}, tried {tried}{missed}; {_whom(holder, last)}"
    return GrantDeniedError(problem, agent=last.agent, tried=tried, holder=None if holder is None else holder.agent)


def _find_holder(above: Sequence[Terms], call: Call, at: datetime) -> Terms | None:
    """Return the nearest agent above that could delegate the call: it and everybody above it may delegate it."""
    holder = None
    for one in above:
        # From the root down: below a hop that may not delegate the call, nobody can pass it on, whatever their own
        # terms say.
        if not one.may_delegate.allows(call, at):
            break
        holder = one
    return holder


def _whom(holder: Terms | None, last: Terms) -> str:
    if holder is None:
        return f"nobody above holds it, so only {last.principal} can grant it"
    return f"{holder.agent} holds it"


def _shown(scope: Scope, call: Call) -> str:
    # Permits of the same action first, and only a few: a model reads this, and most likely goes on with one of them.
    alike = [permit for permit in scope.permits if permit.pattern.action == call.action]
    others = [permit for permit in scope.permits if permit.pattern.action != call.action]
    shown = [permit.text for permit in (*alike, *others)[:_SHOWN]]
    more = len(scope.permits) - len(shown)
    return (" | ".join(shown) or "do nothing") + (f" and {more} more" if more else "")


def _missed(last: Terms, call: Call, at: datetime, shown: Mapping[str, object]) -> str:
    """Return which conditions fail although the pattern of a permit matches."""
    for permit in last.may.permits:
        if permit.pattern.matches(call.action, call.place):
            return f" with {', '.join(_failing(permit, call, at, shown))}"
    return ""


def _failing(permit: Permit, call: Call, at: datetime, shown: Mapping[str, object]) -> Iterator[str]:
    for condition in permit.where:
        if not holds(condition, call.arguments):
            value = argument_of(condition.argument, shown)
            yield f"{condition.argument} {'not given' if is_absent(value) else visible(shorten(value))}"
    if permit.until is not None and at >= permit.until:
        yield f"the time {spell_time(at)}"
