"""Content from outside in a tree: its name, the receipt that brought it, and the runs it had reached."""

from collections.abc import Iterator

from msgspec import Struct, field

from batonpass.accounts.trail.first_lines import Words, first_line, shortened
from batonpass.accounts.why.why_values import Fact
from batonpass.audit.short_ids import ending
from batonpass.audit.verification.taint_check import Taints
from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import ITEM, MESSAGE, RESULT
from batonpass.model.base.ids import CALL, CONTENT, CallId, ContentId, ReceiptId, RunId
from batonpass.model.base.label import Source
from batonpass.model.baton.items import Artifact
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import Asked, Ended
from batonpass.records.item import find_value, name_of_item
from batonpass.records.text import Found, read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_MOST = 5


class Outside(Struct):
    """A walk through a tree, receipt by receipt, that tracks content from outside."""

    view: LedgerView
    root: RunId
    taints: Taints = field(default_factory=Taints)
    tools: dict[CallId, str] = field(default_factory=dict)
    brought: dict[Source, Receipt] = field(default_factory=dict)  # the receipt that brought each source

    def walk(self) -> Iterator[Receipt]:
        """Yield the receipts of the tree in the order of writing, each after it was taken into account."""
        for stored in self.view.find_receipts(ReceiptQuery(root=self.root)):
            receipt = read_receipt(stored)
            if isinstance(receipt.body, Asked):
                self.tools[receipt.body.call] = receipt.body.tool
            before = set(self.taints.standing.get(RunId(receipt.stream), ()))
            self.taints.remember(receipt)
            for source in self.taints.standing.get(RunId(receipt.stream), ()):
                if source not in before:
                    self.brought.setdefault(source, receipt)
            yield receipt

    def until(self, receipt: ReceiptId) -> None:
        """Walk up to a receipt."""
        for found in self.walk():
            if found.id == receipt:
                return

    def name_of(self, source: Source) -> str:
        """Return the name of a source."""
        if source.startswith(f"{CALL}_"):
            return f"{self.tools.get(CallId(source), 'a call')} {ending(source)}"
        if source.startswith(f"{CONTENT}_"):
            return f"{name_of_item(self.view, ContentId(source))} {ending(source)}"
        try:
            agent = str(self.view.get_run(RunId(source)).agent)
        except NotFoundError:
            agent = "a run"
        return f"all that reached {agent} {ending(source)}"

    def words_of(self, source: Source) -> Words | None:
        """Return the first line of a source; None if it has no text."""
        receipt = self.brought.get(source)
        match None if receipt is None else receipt.body:
            case body if isinstance(body, Ended):
                ref = None if receipt is None else receipt.content.get(RESULT) or receipt.content.get(MESSAGE)
                return None if ref is None else _first_line(self.view, ref)
            case _ if source.startswith(f"{CONTENT}_"):
                return _first_words(self.view, ContentId(source))
            case _:
                return None


def taint_facts(view: LedgerView, run: RunId, root: RunId, at: ReceiptId) -> tuple[Fact, ...]:
    """Return the outside sources that had reached a run before a receipt, and the receipts that brought them."""
    outside = Outside(view, root)
    outside.until(at)
    standing = outside.taints.standing.get(run, {})
    told = [_fact(outside, source, entered) for source, entered in list(standing.items())[:_MOST]]
    if len(standing) > _MOST:
        told.append(Fact(label="", text=f"and {len(standing) - _MOST} more"))
    return tuple(told)


def _fact(outside: Outside, source: Source, entered: ReceiptId) -> Fact:
    receipt = read_receipt(outside.view.get_receipt(entered))
    words = outside.words_of(source)
    said = "" if words is None else f": {words}"
    return Fact(label="from outside", text=f"{outside.name_of(source)}{said}", receipt=entered, at=receipt.at)


def _first_line(view: LedgerView, ref: ContentRef) -> Words:
    stored = view.get_content(ref.id)
    if stored.body is None:
        return Words(content=ref.id, found=Found.ERASED)
    return shortened(ref.id, stored.body.decode("utf-8", "replace"))


def _first_words(view: LedgerView, item: ContentId) -> Words:
    """Return the first line of an item; for a file, of its content."""
    value = find_value(view, item)
    if isinstance(value, Artifact):
        stored = view.get_content(value.body)
        if stored.body is not None:
            return shortened(item, stored.body.decode("utf-8", "replace"))
    stored = view.get_content(item)
    return Words(content=item, found=Found.ERASED) if stored.body is None else first_line(ITEM, item, stored.body)
