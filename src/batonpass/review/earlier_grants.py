"""What agents were granted for tasks before, read once for all trees of a review."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import AgentId, HandoffId, RunId, StreamId
from batonpass.model.grants.pattern import Pattern
from batonpass.model.ledger.run import Handoff
from batonpass.records.grant import terms_in
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.store.port import LedgerView

_EARLIER: Final = 30  # handoffs to the same agent before a tree that are looked at
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


class EarlierGrant(Struct, frozen=True):
    """What an agent was granted for a task before."""

    words: frozenset[str]
    patterns: tuple[Pattern, ...]


class EarlierGrants:
    """Finds what an agent got before. Trees of one day have much of their past in common."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._known: dict[HandoffId, EarlierGrant | None] = {}

    def find(self, agent: AgentId, *, before: HandoffId, outside: RunId) -> Iterator[EarlierGrant]:
        """Yield what an agent got in other trees before a handoff, the latest first."""
        for handoff in self._view.find_handoffs(to=agent, before=before, limit=_EARLIER):
            if handoff.root == outside:
                continue
            if handoff.id not in self._known:
                self._known[handoff.id] = self._read(handoff)
            if (granted := self._known[handoff.id]) is not None:
                yield granted

    def _read(self, handoff: Handoff) -> EarlierGrant | None:
        offer = read_receipt(self._view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
        terms = terms_in(self._view, offer)
        if terms is None:
            return None
        ref = offer.content.get(TASK)
        body = None if ref is None else next((one.body for one in find_in_chunks(self._view, (ref.id,))), None)
        task = "" if body is None else body.decode(errors="replace")
        return EarlierGrant(words_of(task), tuple(permit.pattern for permit in terms.may.permits))


def words_of(task: str) -> frozenset[str]:
    """Return the words by which tasks are compared."""
    return frozenset(_WORD.findall(task.casefold()))
