"""Suggests the least grant that covers observed calls: exact resources where few were seen, or else a directory."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import AgentId
from batonpass.model.base.value import Value
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.pattern import ANY, Pattern, read_pattern
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import MOST_PERMITS, Scope

SIBLINGS: Final = 3
FIXED: Final = 1
# Tools and programs have names and not paths: three tools of a server say nothing about its other tools.
NAMES: Final = frozenset({"call", "run"})


class Suggestion(Value, frozen=True, kw_only=True):
    """A permit, and how many of the observed calls it covers."""

    permit: Permit
    calls: int


class LeastScope(Value, frozen=True, kw_only=True):
    """The permits that cover the observed calls of one agent, and the calls that no permit may cover."""

    agent: AgentId
    suggested: tuple[Suggestion, ...]
    outside: tuple[str, ...]  # calls beyond the ceiling, and calls on resources that no permit can name
    delegable: tuple[Suggestion, ...] = ()  # permits for the calls of agents to which it handed work
    left: int = 0  # number of permits that did not fit: a grant holds only so many

    @property
    def grant(self) -> Grant:
        """Return the grant that would have covered these calls: its own for use, those below it for delegation."""
        return Grant(
            may=Scope(tuple(suggestion.permit for suggestion in self.suggested)),
            may_delegate=Scope(tuple(suggestion.permit for suggestion in self.delegable)),
        )


class Breadth(Value, frozen=True, kw_only=True):
    """How far a suggestion may go beyond the observed calls."""

    siblings: int = SIBLINGS  # so many different entries of one directory stand for all of it
    fixed: int = FIXED  # leading segments that are never generalised
    ceiling: Scope | None = None  # nothing beyond it is suggested; its conditions and ends are kept
    names: frozenset[str] = NAMES  # actions whose resources are never generalised

    def __post_init__(self) -> None:
        if self.siblings < 2 or self.fixed < 0:  # noqa: PLR2004 - one entry stands for nothing but itself
            raise InvalidValueError("breadth", "needs at least 2 siblings, and not less than 0 fixed segments")


def least_scope(observed: Iterable[tuple[AgentId, Call]], breadth: Breadth | None = None) -> tuple[LeastScope, ...]:
    """Return for each agent the least permits that cover its observed calls, none broader than `breadth` allows."""
    breadth = breadth or Breadth()
    seen: dict[AgentId, list[Call]] = defaultdict(list)
    for agent, call in observed:
        seen[agent].append(call)
    return tuple(_of_agent(agent, calls, breadth) for agent, calls in sorted(seen.items()))


def join_scopes(used: Iterable[LeastScope], passed_on: Iterable[LeastScope]) -> tuple[LeastScope, ...]:
    """Return one scope for each agent: permits for its own calls, and for those of the agents below it."""
    own, below = ({one.agent: one for one in scopes} for scopes in (used, passed_on))
    nothing: tuple[Suggestion, ...] = ()
    return tuple(
        LeastScope(
            agent=agent,
            suggested=own[agent].suggested if agent in own else nothing,
            delegable=below[agent].suggested if agent in below else nothing,
            left=sum(scopes[agent].left for scopes in (own, below) if agent in scopes),
            outside=tuple(
                sorted({text for scopes in (own, below) if agent in scopes for text in scopes[agent].outside})
            ),
        )
        for agent in sorted(own.keys() | below.keys())
    )


def _of_agent(agent: AgentId, calls: list[Call], breadth: Breadth) -> LeastScope:
    exact = {Pattern(call.action, call.place.absolute, call.place.segments, more=False) for call in calls}
    groups: dict[tuple[str, bool], set[tuple[str, ...]]] = defaultdict(set)
    for pattern in exact:
        if is_readable(pattern) and _is_below(pattern, breadth.ceiling):
            groups[pattern.action, pattern.absolute].add(pattern.segments)
    patterns = [
        pattern
        for (action, absolute), found in sorted(groups.items())
        for pattern in _generalise(Pattern(action, absolute, (), more=False), found, breadth)
    ]
    permits = [permit for pattern in patterns for permit in _permits(pattern, breadth.ceiling)]
    found = [Suggestion(permit=one, calls=sum(_means(one.pattern, call) for call in calls)) for one in permits]
    # If a grant cannot hold that many permits, those with the most calls are kept, and the others are counted.
    most = {id(one) for one in sorted(found, key=lambda one: -one.calls)[:MOST_PERMITS]}
    kept = tuple(one for one in found if id(one) in most)
    outside = {str(call) for call in calls if not any(_means(one.permit.pattern, call) for one in kept)}
    return LeastScope(agent=agent, suggested=kept, outside=tuple(sorted(outside)), left=len(found) - len(kept))


def _generalise(at: Pattern, found: set[tuple[str, ...]], breadth: Breadth) -> Iterator[Pattern]:
    """Yield the patterns for the resources that were found below a place; `at` is that place, without wildcards."""
    depth = len(at.segments)
    entries: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for segments in found:
        entries[segments[depth]].add(segments)
    if at.action not in breadth.names and depth >= breadth.fixed and len(entries) >= breadth.siblings:
        deep = any(len(segments) > depth + 1 for segments in found)
        whole = (
            Pattern(at.action, at.absolute, at.segments, more=True)
            if deep
            else Pattern(at.action, at.absolute, (*at.segments, ANY), more=False)
        )
        if _is_below(whole, breadth.ceiling):
            yield whole
            return
    for name, below in sorted(entries.items()):
        here = (*at.segments, name)
        exact = Pattern(at.action, at.absolute, here, more=False)
        if here in below:
            yield exact
        if deeper := below - {here}:
            yield from _generalise(exact, deeper, breadth)


def is_readable(pattern: Pattern) -> bool:
    """Return whether a pattern stays the same when it is written down and read again.

    A call may use a name that mixes letters which look alike. A grant that people read must not contain it.
    """
    try:
        return read_pattern(str(pattern)) == pattern
    except InvalidValueError:
        return False


def _is_below(pattern: Pattern, ceiling: Scope | None) -> bool:
    """Return whether a ceiling covers everything that a pattern matches, under all conditions."""
    if ceiling is None:
        return True
    return Scope(tuple(Permit(one.pattern) for one in ceiling.permits)).covers(Scope((Permit(pattern),)))


def _permits(pattern: Pattern, ceiling: Scope | None) -> tuple[Permit, ...]:
    """Return the permits for a pattern below a ceiling, with the conditions that the ceiling sets."""
    wanted = Scope((Permit(pattern),))
    return wanted.permits if ceiling is None or ceiling.covers(wanted) else ceiling.meet(wanted).permits


def _means(pattern: Pattern, call: Call) -> bool:
    return pattern.matches(call.action, call.place)
