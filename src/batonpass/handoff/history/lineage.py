"""The lineage of a run, read from receipts."""

from collections.abc import Iterator

from batonpass.guard.policy.hops import Lineage
from batonpass.handoff.history.offers import read_words
from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.bodies.body import RunStarted
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt


def read_lineage(view: LedgerView, run: Run) -> Lineage:
    """Return who works for whom, from a run up to its root."""
    return Lineage(hops=tuple(_hops(view, run)), before=_before(view, run))


def _before(view: LedgerView, run: Run) -> int:
    """Return how many agents of other ledgers worked before the root."""
    begun = decode_receipt(view.get_receipt_at(StreamId(run.root), 1).payload).body
    return begun.upstream if isinstance(begun, RunStarted) else 0


def _hops(view: LedgerView, run: Run) -> Iterator[tuple[AgentId, str | None]]:
    while run.parent is not None and run.handoff is not None:
        handoff = view.get_handoff(run.handoff)
        offered = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
        yield run.agent, read_words(view, offered.content.get(TASK))
        run = view.get_run(run.parent)
    yield run.agent, None
