"""A grant compared with its use: calls made, calls denied, and the permits that would have been enough."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from batonpass.errors import InvalidValueError
from batonpass.guard.grants.least_grant import Breadth, Suggestion, is_readable, least_scope
from batonpass.handoff.history.written_files import SHELL, read_written
from batonpass.model.base.content_names import SCOPE
from batonpass.model.base.ids import RunId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.pattern import Pattern
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.records.call import BEYOND, CallOutcome, read_calls
from batonpass.store.port import LedgerView
from batonpass.wire.canonical import encode


class Use(Struct):
    """The calls that a run made and the rules by which it was denied, each with a count."""

    made: dict[tuple[str, str, str], int] = field(default_factory=dict)  # by tool, action, resource
    beyond: dict[tuple[str, str, str], int] = field(default_factory=dict)  # those that the grant did not cover
    refused: dict[str, int] = field(default_factory=dict)
    unnamed: int = 0  # calls that were made, but that no permit can name
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self, call: Call | None, flags: Iterable[str] = ()) -> None:
        """Count a call that is made. None means that no permit can name its target."""
        with self._lock:
            if call is None or not _is_nameable(call):
                self.unnamed += 1
                return
            did = call.tool, call.action, call.resource
            self.made[did] = self.made.get(did, 0) + 1
            self.beyond[did] = self.beyond.get(did, 0) + (not BEYOND.isdisjoint(flags))

    def refuse(self, rule: str) -> None:
        """Count a call that was denied."""
        with self._lock:
            self.refused[rule] = self.refused.get(rule, 0) + 1


def _is_nameable(call: Call) -> bool:
    try:
        place = call.place
    except InvalidValueError:
        return False
    if place.segments and place.segments[0][0] != "~" and call.resource.isascii():
        # It was read as a resource, and a pattern reads it the same way. Only letters of other scripts could look
        # alike, and only `./~x` loses its meaning when it stands alone.
        return True
    return is_readable(Pattern(call.action, place.absolute, place.segments, more=False))


def read_use(view: LedgerView, run: RunId, lead: Callable[[str], str]) -> Use:
    """Return the made and denied calls of a run so far, from its receipts. Erased contents are missing.

    `lead` takes the path of a file from the root of its repository, and returns where it leads in the work tree.
    """
    use = Use()
    for call in read_calls(view, view.get_run(run)).values():
        if call.outcome is CallOutcome.DENIED:
            use.refuse(call.rule or "")
        elif call.is_made and (ref := call.content.get(SCOPE)) is not None:
            action, _, resource = (view.get_content(ref.id).body or b"").decode().partition(":")
            if resource:
                use.make(Call(call.tool, action, resource), call.asked_flags)
            for written in read_written(view, call, lead) if call.tool == SHELL else ():
                use.make(written)
        elif call.is_made:
            use.make(None)
    return use


def describe_use(terms: Terms, use: Use) -> bytes:
    """Return a document that compares a grant with its use: used, denied, and done beyond the grant."""
    least = suggest_least(use, terms)
    return encode(
        {
            "may": _counted(terms.may, use),
            "denied": dict(sorted(use.refused.items())),
            "least": [{"permit": one.permit.text, "calls": one.calls} for one in least.within],
            **(
                {"beyond": [{"permit": one.permit.text, "calls": one.calls} for one in least.beyond]}
                if least.beyond
                else {}
            ),
            **({"unnamed": least.unnamed} if least.unnamed else {}),
        }
    )


class Enough(Struct, frozen=True, kw_only=True):
    """The permits that would have been enough: within the grant, beyond it, and a count of calls that none can name."""

    within: tuple[Suggestion, ...] = ()
    beyond: tuple[Suggestion, ...] = ()
    unnamed: int = 0


def suggest_least(use: Use, terms: Terms) -> Enough:
    """Return the least permits for everything that was done, within the grant and beyond it.

    Calls go beyond a grant where it stops nobody, for instance in an observed run.
    """
    within, beyond = [], []
    for call, times in _calls(use):
        covered = any(_means(permit, call) for permit in terms.may.permits)
        more = use.beyond.get((call.tool, call.action, call.resource), 0) if covered else times
        within += [call] * (times - more)
        beyond += [call] * more
    granted, granted_left = _least(terms, within, Breadth(ceiling=terms.may))
    others, others_left = _least(terms, beyond, Breadth())
    return Enough(within=granted, beyond=others, unnamed=use.unnamed + granted_left + others_left)


def _counted(granted: Scope, use: Use) -> list[Mapping[str, object]]:
    """Return each permit with the number of calls that it covers, alone or among others."""
    return [
        {"permit": permit.text, "calls": sum(times for call, times in _calls(use) if _means(permit, call))}
        for permit in granted.permits
    ]


def _least(terms: Terms, calls: Sequence[Call], breadth: Breadth) -> tuple[tuple[Suggestion, ...], int]:
    """Return the least permits for some calls, and how many calls they do not cover."""
    found = next(iter(least_scope(((terms.agent, call) for call in calls), breadth)), None)
    if found is None:
        return (), 0
    return found.suggested, sum(str(call) in found.outside for call in calls)


def _calls(use: Use) -> Iterator[tuple[Call, int]]:
    for (tool, action, resource), times in sorted(use.made.items()):
        yield Call(tool, action, resource), times


def _means(permit: Permit, call: Call) -> bool:
    return permit.pattern.matches(call.action, call.place)
