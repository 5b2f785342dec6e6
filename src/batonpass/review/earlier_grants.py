"""Earlier grants of agents, with their tasks, read once for all trees of a review."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.model.base.content_names import TASK, TERMS
from batonpass.model.base.ids import AgentId, HandoffId, RunId, StreamId
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.pattern import Pattern
from batonpass.model.ledger.run import Handoff
from batonpass.records.grant import terms_from
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.store.port import LedgerView

_EARLIER: Final = 30  # handoffs to the same agent before a tree that are looked at
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


class EarlierGrant(Struct, frozen=True):
    """An earlier grant of an agent, and the words of its task."""

    words: frozenset[str]
    patterns: tuple[Pattern, ...]


class EarlierGrants:
    """Finds the earlier grants of an agent. Trees of one day have much of their past in common."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._known: dict[HandoffId, EarlierGrant | None] = {}

    def find(self, agent: AgentId, *, before: HandoffId, outside: RunId) -> Iterator[EarlierGrant]:
        """Yield the grants of an agent in other trees before a handoff, the latest first."""
        for handoff in self._view.find_handoffs(to=agent, before=before, limit=_EARLIER):
            if handoff.root == outside:
                continue
            if handoff.id not in self._known:
                self._known[handoff.id] = self._read(handoff)
            if (granted := self._known[handoff.id]) is not None:
                yield granted

    def note(self, handoff: HandoffId, terms: Terms | None, task: str) -> None:
        """Keep the grant of a handoff that was read already, for the trees after it."""
        self._known.setdefault(handoff, _granted(terms, task))

    def _read(self, handoff: Handoff) -> EarlierGrant | None:
        offer = read_receipt(self._view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
        if TERMS not in offer.content:
            return None
        refs = {name: offer.content[name].id for name in (TERMS, TASK) if name in offer.content}
        bodies = {stored.id: stored.body for stored in find_in_chunks(self._view, tuple(refs.values()))}
        said = {name: bodies.get(content) for name, content in refs.items()}
        return _granted(terms_from(said[TERMS]), (said.get(TASK) or b"").decode(errors="replace"))


def _granted(terms: Terms | None, task: str) -> EarlierGrant | None:
    if terms is None:
        return None
    return EarlierGrant(words_of(task), tuple(permit.pattern for permit in terms.may.permits))


def words_of(task: str) -> frozenset[str]:
    """Return the words by which tasks are compared."""
    return frozenset(_WORD.findall(task.casefold()))
