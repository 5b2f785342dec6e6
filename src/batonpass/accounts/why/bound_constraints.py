"""The constraints that bound a run at each moment: given or recorded, minus those it was released from."""

from collections.abc import Iterable, Iterator, Sequence

from batonpass.handoff.history.offers import read_items, read_offer
from batonpass.model.baton.items import Item
from batonpass.model.bodies.body import Carried, Part, RunRecorded, RunRelaxed
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.store.port import LedgerView


class BoundConstraints:
    """The constraints of one run, from its receipts."""

    def __init__(self, view: LedgerView, run: Run, receipts: Iterable[Receipt]) -> None:
        self._bound: list[tuple[int, Item]] = []  # each with the receipt after which it binds
        self._released: dict[str, int] = {}  # by item: the receipt after which it no longer binds
        if run.handoff is not None:
            given = read_offer(view, view.get_handoff(run.handoff)).baton.of(Part.CONSTRAINT)
            self._bound += ((0, item) for item in given)
        for receipt in receipts:
            if isinstance(receipt.body, RunRecorded):
                recorded = [ref for ref in receipt.body.items if ref.part is Part.CONSTRAINT]
                self._bound += ((receipt.seq, item) for item in _read(view, recorded))
            elif isinstance(receipt.body, RunRelaxed):
                self._released.setdefault(receipt.body.item, receipt.seq)

    def at(self, receipt: Receipt) -> Iterator[Item]:
        """Yield the constraints that bound the run when it wrote a receipt."""
        for since, item in self._bound:
            if since < receipt.seq <= self._released.get(item.id, receipt.seq):
                yield item


def _read(view: LedgerView, refs: Sequence[Carried]) -> Iterable[Item]:
    contents = {content.id: content for content in view.find_contents([ref.item for ref in refs])}
    return read_items(view, refs, contents)[0]
