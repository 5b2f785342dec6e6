"""From a run up to the human: its task, whoever handed it on, and every run above."""

from collections.abc import Iterator

from batonpass.errors import EditedError, NotFoundError
from batonpass.model.base.content_names import INTENT, TASK
from batonpass.model.base.ids import StreamId
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.text import Text, read_receipt, read_texts
from batonpass.store.port import LedgerView


def find_ancestors(view: LedgerView, run: Run) -> Iterator[Run]:
    """Yield the parent of a run, its parent, and so on up to the root. Raises `EditedError` if they go in a circle."""
    seen = {run.id}
    while run.parent is not None:
        if run.parent in seen:
            raise EditedError("the run is its own ancestor", stream=run.id, field="parent")
        seen.add(run.parent)
        run = view.get_run(run.parent)
        yield run


def get_offer(view: LedgerView, handoff: Handoff) -> tuple[Receipt, HandoffInitiated]:
    """Return the receipt of an offer. Raises `EditedError` if there is another in its place."""
    receipt = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    if not isinstance(receipt.body, HandoffInitiated):
        raise EditedError("the handoff does not begin with an offer", stream=handoff.parent, seq=handoff.seq)
    return receipt, receipt.body


def read_task(view: LedgerView, handoff: Handoff) -> Text | None:
    """Return the task that was handed off; None if the receipt that says so is not there."""
    try:
        offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    except NotFoundError:
        return None
    return read_texts(view, offer).get(TASK)


class Tasks:
    """What runs were asked to do: the intent of a root, the task of any other. One receipt is read for each."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view

    def find(self, run: Run) -> Text | None:
        """Return what a run was asked to do; None if the receipt that says so is not there."""
        try:
            if run.parent is not None and run.handoff is not None:
                handoff = self._view.get_handoff(run.handoff)
                return read_task(self._view, handoff) if handoff.parent == run.parent else None
            # A root begins with what was wanted: that is its first receipt.
            opening = read_receipt(self._view.get_receipt_at(StreamId(run.id), 1))
        except NotFoundError:
            return None
        return read_texts(self._view, opening).get(INTENT)

    def first_line(self, run: Run) -> str:
        """Return what a run was asked to do as it fits into a list."""
        text = self.find(run)
        return "unknown" if text is None else text.first_line
