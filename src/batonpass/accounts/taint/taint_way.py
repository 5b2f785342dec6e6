"""The shortest way of content from outside to something, hop by hop, with copied words marked.

That a source reached a run does not prove that it had an effect. Copied words are stronger evidence. So every text on
the way is compared with the source, except for words that trusted people had used before.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.accounts.taint.receipt_texts import item_text, source_text, texts_of
from batonpass.accounts.taint.taint_phrases import called_with, came_with, entry_of, hop_at, quoted_reason
from batonpass.accounts.taint.taint_spread import Spread, SpreadLink, Ways, linked_trees
from batonpass.accounts.taint.taint_values import Did, Quote, TaintHop, Way
from batonpass.audit.short_ids import ending
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RUN,
    CallId,
    ContentId,
    HandoffId,
    ReceiptId,
    RunId,
    StreamId,
)
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, Kind, RunTainted
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import Asked, Ended, find_call, read_call
from batonpass.records.hold import find_leave
from batonpass.records.lineage import find_ancestors
from batonpass.records.text import read_receipt
from batonpass.scan.passages import Passages, Span, mark
from batonpass.store.port import LedgerView, ReceiptQuery

Target: TypeAlias = RunId | HandoffId | CallId | ReceiptId

_BEFORE: Final = 32  # characters shown before the first mark
_SHOWN: Final = 160
_MOST_QUOTES: Final = 4  # texts of one hop
_MOST_TREES: Final = 256

_ACTS: Final = {
    Kind.TOOL_REQUESTED: Did.CALLED,
    Kind.TOOL_CACHED: Did.CALLED,
    Kind.TOOL_HELD: Did.HELD,
    Kind.TOOL_DENIED: Did.DENIED,
    Kind.HANDOFF_COMPLETED: Did.REPORTED,
    Kind.HANDOFF_FAILED: Did.REPORTED,
}

# Acts of a run in its own words, made from everything that it knows.
_USES: Final = {
    Kind.TOOL_REQUESTED: Did.CALLED,
    Kind.TOOL_HELD: Did.HELD,
    Kind.TOOL_DENIED: Did.DENIED,
    Kind.HANDOFF_INITIATED: Did.HANDED_ON,
    Kind.TOOL_COMPLETED: Did.WROTE,
    Kind.HANDOFF_COMPLETED: Did.REPORTED,
}


def find_way(view: LedgerView, target: Target) -> tuple[Way, ...]:
    """Return the shortest way of all content from outside to a run, handoff, call or receipt.

    Sources whose words appear in the target come first, then those whose words appear on the way, then the shortest
    ways. For a run this is all content that ever reached it; for a call or a receipt, the content that had arrived when
    it was recorded. For a handoff it is the content that came with the offer; if none did, the content that reached its
    attempts. Raises `NotFoundError`.
    """
    asked = _find_asked(view, target)
    spread, found, receipts = _spread_to(view, asked)
    teller = _Teller(view, spread, asked.outcome)
    if asked.at is None:
        found = teller.with_first_use(found, [one for one in receipts if RunId(one.stream) in asked.runs])
    ways = [teller.way(together) for together in teller.grouped(found)]
    ways.sort(key=lambda way: (not way.is_quoted_at_the_end, not way.is_quoted, len(way.hops), way.entry.at))
    return tuple(ways)


class _Asked(Struct, frozen=True, kw_only=True):
    """The target: where to stop, and the last hop."""

    root: RunId
    runs: tuple[RunId, ...] = ()  # everything that ever reached these
    at: ReceiptId | None = None  # or what stood when this was recorded
    handoff: HandoffId | None = None
    outcome: Receipt | None = None  # of a call: its outcome, with what it wrote


def _find_asked(view: LedgerView, target: Target) -> _Asked:
    if target.startswith(f"{RUN}_"):
        run = view.get_run(RunId(target))
        return _Asked(root=run.root, runs=(run.id,))
    if target.startswith(f"{HANDOFF}_"):
        handoff = view.get_handoff(HandoffId(target))
        attempts = tuple(run.id for run in view.find_attempts(handoff))
        return _Asked(root=handoff.root, handoff=handoff.id, runs=attempts)
    if target.startswith(f"{CALL}_"):
        call = find_call(view, CallId(target))
        if call is None:
            raise NotFoundError("call", target)
        asked = call.receipt
        return _Asked(root=asked.root or RunId(asked.stream), at=asked.id, outcome=call.ending)
    receipt = read_receipt(view.get_receipt(ReceiptId(target)))
    if isinstance(receipt.body, HandoffInitiated):
        return _find_asked(view, receipt.body.handoff)
    if isinstance(receipt.body, Asked):
        return _find_asked(view, receipt.body.call)
    if receipt.root is None and not receipt.stream.startswith(f"{RUN}_"):
        raise NotFoundError("receipt of a run or a handoff", target)
    return _Asked(root=receipt.root or RunId(receipt.stream), at=receipt.id)


def _spread_to(view: LedgerView, asked: _Asked) -> tuple[Spread, Ways, list[Receipt]]:
    """Read all receipts that may have carried something to the target; return the sources that reached it."""
    spread = Spread()
    receipts = _gathered(view, asked.root)
    for receipt in receipts:
        spread.take(receipt)
        if receipt.id == asked.at:
            return spread, _ending_with(spread, receipt), receipts
    if asked.handoff is not None and spread.offered.get(asked.handoff):
        return spread, spread.offered[asked.handoff], []
    reached: Ways = {}
    for run in asked.runs:
        for source, link in spread.ever.get(run, {}).items():
            reached.setdefault(source, link)
    return spread, reached, receipts


def _ending_with(spread: Spread, receipt: Receipt) -> Ways:
    """Return the sources that stood when a receipt was written, each way ending with that receipt."""
    if receipt.stream.startswith(f"{HANDOFF}_"):
        known = spread.offered.get(HandoffId(receipt.stream), {})
    else:
        known = spread.now.get(RunId(receipt.stream), {})
    did = _ACTS.get(Kind(receipt.kind), Did.KNEW) if receipt.kind in tuple(Kind) else Did.KNEW
    return {
        source: link if link.receipt.id == receipt.id else link.then(did, receipt) for source, link in known.items()
    }


def _gathered(view: LedgerView, root: RunId) -> list[Receipt]:
    """Return the receipts of a tree, and of all trees that something was carried from, in the order of time."""
    seen: set[RunId] = set()
    pending = [root]
    gathered: list[tuple[bool, int, Receipt]] = []
    while pending and len(seen) < _MOST_TREES:
        tree = pending.pop()
        if tree in seen:
            continue
        seen.add(tree)
        own: set[str] = set()
        named: dict[str, None] = {}
        for stored in view.find_receipts(ReceiptQuery(root=tree)):
            receipt = read_receipt(stored)
            gathered.append((stored.position is None, stored.position or 0, receipt))
            own.update(str(one) for one in (getattr(receipt.body, "call", None), stored.stream) if one is not None)
            own.update(ref.id for ref in receipt.content.values())
            named.update(dict.fromkeys(linked_trees(receipt)))
        pending += [other for one in named if one not in own and (other := _tree_of(view, one)) is not None]
    gathered.sort(key=lambda one: one[:2])  # receipts without a position are the latest
    return [receipt for _, _, receipt in gathered]


def _tree_of(view: LedgerView, named: str) -> RunId | None:
    """Return the tree that something was recorded in; None if it is not found."""
    try:
        if named.startswith(f"{RUN}_"):
            return view.get_run(RunId(named)).root
        if named.startswith(f"{CONTENT}_"):
            introduced = view.get_content(ContentId(named)).receipt
            receipt = None if introduced is None else read_receipt(view.get_receipt(introduced))
        else:
            call = find_call(view, CallId(named))
            receipt = None if call is None else call.receipt
    except NotFoundError:
        return None
    return None if receipt is None else receipt.root or RunId(receipt.stream)


class _Teller(Struct):
    """Describes ways: names, texts and marks."""

    view: LedgerView
    spread: Spread
    outcome: Receipt | None
    _texts: dict[Source, str | None] = field(default_factory=dict)
    _written: dict[ReceiptId, list[tuple[str, str | None]]] = field(default_factory=dict)

    def with_first_use(self, ways: Ways, receipts: list[Receipt]) -> Ways:
        """Return ways to runs, each continued to the first act with words of the source, if there is one."""
        passages = Passages[Source]()
        left = dict(ways)
        used: Ways = {}
        for source, link in ways.items():
            if (text := self._text_of(source, link.hops()[0].receipt)) is not None:
                passages.add(source, text)
        for receipt in receipts:
            did = _USES.get(Kind(receipt.body.kind))
            if did is None or not left:
                continue
            since = {source: link for source, link in left.items() if link.receipt.at < receipt.at}
            for source in passages.find((text for _, text in self._said_in(receipt) if text is not None), since):
                further = left[source].then(did, receipt)
                if self.way({source: further}).is_quoted_at_the_end:
                    used[source] = further
                    del left[source]
        return {source: used.get(source, link) for source, link in ways.items()}

    def grouped(self, ways: Ways) -> list[dict[Source, SpreadLink]]:
        """Return ways grouped by the text of their sources, such as a page and the file made from it."""
        groups: dict[str, dict[Source, SpreadLink]] = {}
        for source, link in ways.items():
            text = self._text_of(source, link.hops()[0].receipt)
            groups.setdefault(text or source, {})[source] = link
        return list(groups.values())

    def _text_of(self, source: Source, entered: Receipt) -> str | None:
        if source not in self._texts:
            self._texts[source] = source_text(self.view, source, entered)
        return self._texts[source]

    def way(self, together: dict[Source, SpreadLink]) -> Way:
        """Return the way of sources with the same text: the shortest, or the oldest of these."""
        source = min(together, key=lambda one: (together[one].length, together[one].hops()[0].receipt.at))
        links = together[source].hops()
        text = self._text_of(source, links[0].receipt)
        passages, known = Passages[str](), Passages[str]()
        if text is not None:
            passages.add(source, text)
            for number, said in enumerate(self._said_before(links)):
                known.add(f"{number}", said)
        hops = [
            self._hop(link, frozenset(together), passages, known, is_entry=not number)
            for number, link in enumerate(links)
        ]
        return Way(
            entry=entry_of(self.view, source, tuple(one for one in together if one != source), links[0].receipt),
            hops=tuple(hops),
            since=tuple(self._since(source, links[-1].receipt)),
            readable=text is not None,
        )

    def _hop(
        self,
        link: SpreadLink,
        sources: frozenset[Source],
        passages: Passages[str],
        known: Passages[str],
        *,
        is_entry: bool,
    ) -> TaintHop:
        receipt, body = link.receipt, link.receipt.body
        quotes: list[Quote] = []
        unread: list[str] = []
        for where, text in () if is_entry and link.did is Did.READ else self._said_in(receipt):
            if text is None:
                unread.append(where)
            elif spans := mark(text, passages, known):
                quotes.append(_excerpt(where, text, spans))
        carried = isinstance(body, HandoffInitiated) and any(item.item in sources for item in body.carries)
        untrusted: tuple[Source, ...] = getattr(body, "untrusted", ())
        about = getattr(body, "call", None) or getattr(body, "handoff", None)
        return replace(
            hop_at(self.view, link.did, receipt, self._what(link), about),
            quotes=tuple(quotes[:_MOST_QUOTES]),
            unread=tuple(unread),
            flagged=not sources.isdisjoint(untrusted),
            in_quarantine=carried,
        )

    def _said_in(self, receipt: Receipt) -> list[tuple[str, str | None]]:
        if receipt.id not in self._written:
            said = list(texts_of(self.view, receipt))
            if self.outcome is not None and getattr(receipt.body, "call", None) == getattr(
                self.outcome.body, "call", ""
            ):
                said += [
                    (where, text) for where, text in texts_of(self.view, self.outcome) if where.startswith("file ")
                ]
            self._written[receipt.id] = said
        return self._written[receipt.id]

    def _said_before(self, links: list[SpreadLink]) -> Iterator[str]:
        """Yield the statements of people in the trees on the way, and the tasks of the run where it came in.

        Arguments of the call that brought it count too: an address known before does not come from the page.
        """
        entered = links[0].receipt
        roots = dict.fromkeys(link.receipt.root or RunId(link.receipt.stream) for link in links)
        for root in roots:
            for stated in self.view.find_statements(root):
                if stated.by.startswith("user:"):
                    yield item_text(self.view, stated.item) or ""
        run = self.view.get_run(RunId(entered.stream))
        for each in (run, *find_ancestors(self.view, run)):
            yield from self._asked_of(each.handoff)
        call = getattr(entered.body, "call", None)
        if call is not None and self._was_clean(entered):
            made = find_call(self.view, call)
            if made is not None and made.is_made:
                yield from (text for _, text in texts_of(self.view, made.receipt) if text is not None)

    def _was_clean(self, entered: Receipt) -> bool:
        """Return whether a run knew nothing else from outside when something came in."""
        known = self.spread.ever.get(RunId(entered.stream), {})
        return all(link.receipt.id == entered.id or link.receipt.at > entered.at for link in known.values())

    def _asked_of(self, handoff: HandoffId | None) -> Iterator[str]:
        if handoff is None:
            return
        known = self.view.get_handoff(handoff)
        offer = read_receipt(self.view.get_receipt_at(StreamId(known.parent), known.seq))
        label = getattr(offer.body, "label", None)
        if label is None or not label.is_external:
            yield from (text for _, text in texts_of(self.view, offer) if text is not None)

    def _since(self, source: Source, last: Receipt) -> Iterator[TaintHop]:
        """Yield the rulings on a held call at the end of the way, and on the source in that tree."""
        held = read_call(self.view, last) if last.kind == Kind.TOOL_HELD else None
        for approval in () if held is None else find_leave(self.view, held).approvals:
            yield self._decided(Did.APPROVED if approval.is_for else Did.DENIED, approval.receipt)
        receipt = self.spread.endorsed.get(last.root or RunId(last.stream), {}).get(source)
        if receipt is not None:
            yield self._decided(Did.ENDORSED, receipt)

    def _decided(self, did: Did, receipt: Receipt) -> TaintHop:
        what = f"by {getattr(receipt.body, 'by', 'nobody')}{quoted_reason(self.view, receipt)}"
        return hop_at(self.view, did, receipt, what, getattr(receipt.body, "handoff", None))

    def _what(self, link: SpreadLink) -> str:
        receipt, body = link.receipt, link.receipt.body
        match body:
            case HandoffInitiated():
                told = f"to {body.to} {ending(body.handoff)}"
            case HandoffAccepted():
                told = f"attempt {body.attempt}"
            case RunTainted():
                told = came_with(self.view, receipt, body)
            case _ if isinstance(body, Asked):
                told = called_with(self.view, receipt, body.tool)
            case _ if isinstance(body, Ended):
                made = read_call(self.view, receipt)
                call = "a call" if made is None else called_with(self.view, made.receipt, made.tool)
                told = f"the result of {call}" if link.did is Did.READ else f"by {call}"
            case _:
                told = receipt.kind if link.did is Did.KNEW else ""
        return told


def _excerpt(where: str, text: str, spans: tuple[Span, ...]) -> Quote:
    """Return the part of a text around its marks, as far as it fits."""
    start = max(0, spans[0].start - _BEFORE)
    end = min(len(text), start + _SHOWN)
    shown = [Span(span.start, min(span.end, end)) for span in spans if span.start < end]
    before, after = "…" if start else "", "…" if end < len(text) else ""
    moved = tuple(Span(span.start - start + len(before), span.end - start + len(before)) for span in shown)
    return Quote(where=where, text=f"{before}{text[start:end]}{after}", spans=moved, more=len(spans) - len(shown))
