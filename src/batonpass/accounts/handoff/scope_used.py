"""What a handoff was granted against what its attempts used of it, together: no attempt alone is the whole story."""

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
    """What was granted, each permit with its calls, and what would have been enough for all that was done."""

    granted: Mapping[str, int]  # permits, with how many calls each let be made
    least: Mapping[str, int]  # the least permits within the grant that would have done
    beyond: Mapping[str, int]  # the least permits for what was done although the grant does not cover it
    unnamed: int  # calls that no permit can name, or on more places than one grant holds
    over: bool  # whether nobody works on it now

    @property
    def unused(self) -> tuple[str, ...]:
        """Return what was granted and never used."""
        return tuple(permit for permit, calls in self.granted.items() if not calls)

    @property
    def is_idle(self) -> bool:
        """Return whether nothing at all was done."""
        return not self.least and not self.beyond and not self.unnamed


def read_scope_used(view: LedgerView, attempts: Sequence[tuple[Run, Text | None]]) -> ScopeUsed | None:
    """Return what attempts used of their grant, by what each said at its end, else by its calls; None without a grant.

    The latest attempt keeps what an earlier one finished, and says nothing of it.
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
        unnamed=sum(count for one in said if isinstance(count := one.get("unnamed", 0), int)),
        over=attempts[-1][0].state is not RunState.OPEN,
    )


def _terms(view: LedgerView, run: Run) -> Terms | None:
    try:
        chain = read_bounds(view, run).chain
    except BatonpassError:
        return None  # what it was granted is gone, or is not what was signed: the verifier says which
    return chain[-1].said if chain else None


def _said(view: LedgerView, run: Run, text: Text | None, terms: Terms) -> dict[str, object]:
    try:
        read = None if text is None or text.body is None else json.loads(text.body)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        # Of a file that a command changed only its place in the repository is known here.
        read = json.loads(describe_use(terms, read_use(view, run.id, str)))
    return read


def _together(listed: Iterable[object]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in listed:
        for each in one if isinstance(one, list) else ():
            found[str(each["permit"])] += int(each["calls"])
    return found
