"""The grant of a handoff compared with the use that all its attempts made of it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from batonpass.errors import BatonpassError
from batonpass.handoff.history.grant_use import describe_use, read_use
from batonpass.handoff.runtime.bounds import read_bounds
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.text import Text
from batonpass.store.port import LedgerView


class ScopeUsed(Struct, frozen=True, kw_only=True):
    """The permits of a grant, the calls under each, and the permits that would have been enough."""

    granted: Mapping[str, int]  # each permit, with the number of calls it covered
    least: Mapping[str, int]  # the least permits within the grant that cover the calls
    beyond: Mapping[str, int]  # the least permits for calls outside the grant
    unnamed: int  # calls that no permit can express, or that need more places than one grant has
    over: bool  # whether nobody is working on it now

    @property
    def unused(self) -> tuple[str, ...]:
        """Return the permits that were never used."""
        return tuple(permit for permit, calls in self.granted.items() if not calls)

    @property
    def is_idle(self) -> bool:
        """Return whether there were no calls at all."""
        return not self.least and not self.beyond and not self.unnamed


def read_scope_used(view: LedgerView, attempts: Sequence[tuple[Run, Text | None]]) -> ScopeUsed | None:
    """Return how attempts used their grant: as reported at their end, else by their calls; None without a grant.

    The latest attempt keeps the finished calls of earlier ones, and does not report them.
    """
    terms = _terms(view, attempts[-1][0]) if attempts else None
    if terms is None:
        return None
    said = [_said(view, run, text, terms) for run, text in attempts]
    counted = {name: _together(one.get(name) for one in said) for name in ("may", "least", "beyond")}
    return ScopeUsed(
        granted={permit: counted["may"][permit] for permit in terms.may.lines},
        least=counted["least"],
        beyond=counted["beyond"],
        unnamed=_unnamed(said),
        over=attempts[-1][0].state is not RunState.OPEN,
    )


def scope_said(bodies: Iterable[bytes | None]) -> ScopeUsed | None:
    """Return how attempts used their grant, as they reported at their end; None if nobody reported it."""
    said = [read for body in bodies if (read := _document(body)) is not None]
    if not said:
        return None
    counted = {name: _together(one.get(name) for one in said) for name in ("may", "least", "beyond")}
    return ScopeUsed(
        granted=counted["may"],
        least=counted["least"],
        beyond=counted["beyond"],
        unnamed=_unnamed(said),
        over=True,
    )


def _document(body: bytes | None) -> dict[str, object] | None:
    try:
        read = None if body is None else json.loads(body)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _unnamed(said: Iterable[Mapping[str, object]]) -> int:
    return sum(count for one in said if isinstance(count := one.get("unnamed", 0), int))


def _terms(view: LedgerView, run: Run) -> Terms | None:
    try:
        chain = read_bounds(view, run).chain
    except BatonpassError:
        return None  # the terms are gone or altered; verification tells which
    return chain[-1].said if chain else None


def _said(view: LedgerView, run: Run, text: Text | None, terms: Terms) -> dict[str, object]:
    read = _document(None if text is None else text.body)
    # For a file that a command changed, only its place in the repository is known.
    return _document(describe_use(terms, read_use(view, run.id, str))) or {} if read is None else read


def _together(listed: Iterable[object]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in listed:
        for each in one if isinstance(one, list) else ():
            found[str(each["permit"])] += int(each["calls"])
    return found
