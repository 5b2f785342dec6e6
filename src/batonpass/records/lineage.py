"""The way from a run up to the human: its task, its offer, and every run above it."""

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
    """Yield the runs above a run, up to the root. Raises `EditedError` if they form a cycle."""
    seen = {run.id}
    while run.parent is not None:
        if run.parent in seen:
            raise EditedError("the run is its own ancestor", stream=run.id, field="parent")
        seen.add(run.parent)
        run = view.get_run(run.parent)
        yield run


def get_offer(view: LedgerView, handoff: Handoff) -> tuple[Receipt, HandoffInitiated]:
    """Return the receipt of an offer. Raises `EditedError` if another receipt is in its place."""
    receipt = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    if not isinstance(receipt.body, HandoffInitiated):
        raise EditedError("the handoff does not begin with an offer", stream=handoff.parent, seq=handoff.seq)
    return receipt, receipt.body


def read_task(view: LedgerView, handoff: Handoff) -> Text | None:
    """Return the task of a handoff; None if its offer is missing."""
    try:
        offer = read_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq))
    except NotFoundError:
        return None
    return read_texts(view, offer).get(TASK)


class Tasks:
    """Reads the tasks of runs: the intent of a root, the task of any other. Each costs one receipt."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view

    def find(self, run: Run) -> Text | None:
        """Return the task of a run; None if the receipt that has it is missing."""
        try:
            if run.parent is not None and run.handoff is not None:
                handoff = self._view.get_handoff(run.handoff)
                return read_task(self._view, handoff) if handoff.parent == run.parent else None
            # The first receipt of a root has the intent.
            opening = read_receipt(self._view.get_receipt_at(StreamId(run.id), 1))
        except NotFoundError:
            return None
        return read_texts(self._view, opening).get(INTENT)

    def first_line(self, run: Run) -> str:
        """Return the task of a run, short enough for a list."""
        text = self.find(run)
        return "unknown" if text is None else text.first_line
