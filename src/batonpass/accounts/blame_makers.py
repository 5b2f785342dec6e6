"""From a call up to the human: who made it, on which task, by whose leave, and what became of the result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from batonpass.accounts.blame_proof import Witness
from batonpass.accounts.blame_values import Hop, Link, Maker, Standing
from batonpass.accounts.granted import may_under
from batonpass.accounts.sources import Source, happened_at, read_source, when
from batonpass.accounts.trail_words import INTENT
from batonpass.accounts.why_hops import brief_of, decision, offer_of
from batonpass.accounts.why_values import Fact
from batonpass.attribution.change import FileChange
from batonpass.audit.lookup import find_ancestors, read_contents, read_receipt, read_texts
from batonpass.errors import NotFoundError
from batonpass.handoff.transfer.read_offer import TASK
from batonpass.model.bodies import (
    HandoffApproved,
    HandoffBacked,
    HandoffDenied,
    HandoffHeld,
    ToolDenied,
    ToolRequested,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.content import ContentRef
from batonpass.model.handoff_bodies import HandoffInitiated
from batonpass.model.ids import CallId, HandoffId, RunId, StreamId
from batonpass.model.lifecycle import State
from batonpass.model.receipt import Receipt, StoredReceipt
from batonpass.model.run import Run
from batonpass.store.port import LedgerView, ReceiptQuery

_LINKS: Final = {"inferred": Link.INFERRED, "unknown": Link.UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """How one task was handed on: the hop, what was granted and decided with it, and the receipts that say so."""

    hop: Hop
    seq: int  # where the offer stands in its sender's stream
    may: tuple[str, ...] | None
    decided: tuple[Fact, ...]
    acts: tuple[Receipt, ...]
    rests_on: tuple[StoredReceipt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lineage:
    """A run with everything above it, and the receipts that say so."""

    run: Run
    hops: tuple[Hop, ...]
    offered: int | None  # where the root handed on what led here; None for the root itself
    may: tuple[str, ...] | None
    approvals: tuple[Fact, ...]
    standing: Standing
    judgements: tuple[Fact, ...]
    rests_on: tuple[StoredReceipt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """Something that the human said, and where in the root's stream that stands."""

    seq: int
    at: datetime
    ref: ContentRef
    stored: StoredReceipt


class Makers:
    """Tells who made what; what several have in common is read once."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._witness = Witness(view)
        self._lineages: dict[RunId, _Lineage] = {}
        self._offers: dict[HandoffId, _Offered] = {}
        self._statements: dict[RunId, list[_Said]] = {}

    def of_call(
        self, stored: StoredReceipt, receipt: Receipt, call: CallId, changes: Sequence[FileChange] = ()
    ) -> Maker:
        """Return who made a call, by the receipt of its outcome, of its request, or of its denial."""
        requested, request = find_request(self._view, stored, receipt, call)
        tool = request.body.tool if isinstance(request.body, ToolRequested | ToolDenied) else "unknown"
        return self._made(receipt, (stored, requested), tool, call=call, changes=changes)

    def of_receipt(self, stored: StoredReceipt, receipt: Receipt, did: str) -> Maker:
        """Return who did what a receipt of a run says, which is no call."""
        return self._made(receipt, (stored,), did)

    def _made(
        self,
        receipt: Receipt,
        own: Sequence[StoredReceipt],
        tool: str,
        *,
        call: CallId | None = None,
        changes: Sequence[FileChange] = (),
    ) -> Maker:
        lineage = self._lineage(RunId(receipt.stream))
        said = self._said(lineage.run.root, receipt.seq if lineage.offered is None else lineage.offered)
        source = read_source(self._view, receipt)
        heard = () if said is None else (said.stored,)
        rests_on = {stored.id: stored for stored in (*own, *lineage.rests_on, *heard)}
        return Maker(
            call=call,
            tool=tool,
            at=happened_at(receipt, source),
            receipt=receipt.id,
            run=lineage.run,
            mode=receipt.mode,
            source=source,
            changes=tuple(changes),
            hops=lineage.hops,
            said=None if said is None else read_contents(self._view, {INTENT: said.ref})[INTENT],
            said_at=None if said is None else said.at,
            may=lineage.may,
            approvals=lineage.approvals,
            standing=lineage.standing,
            judgements=lineage.judgements,
            proof=self._witness.prove(rests_on.values()),
            in_doubt=isinstance(receipt.body, ToolRequested),
        )

    def _lineage(self, run: RunId) -> _Lineage:
        if run not in self._lineages:
            self._lineages[run] = self._read_lineage(self._view.get_run(run))
        return self._lineages[run]

    def _read_lineage(self, run: Run) -> _Lineage:
        line = (run, *find_ancestors(self._view, run))
        offers = [self._offered(one.handoff) for one in line if one.handoff is not None]
        openings = [self._view.get_receipt_at(StreamId(one.id), 1) for one in line]
        # Who was started by which offer is told by the offer, if it was imported, and by the acceptance if it was seen.
        accepted = [read_source(self._view, read_receipt(opening)) for opening in openings]
        hops = [
            Hop(
                run=one.id,
                agent=one.agent,
                handoff=offered.hop.handoff,
                sender=above.agent,
                offer=offered.hop.offer,
                task=offered.hop.task,
                link=offered.hop.link if source is None or source.link is None else _link(source),
                subagent=offered.hop.subagent,
            )
            for one, above, offered, source in zip(line, line[1:], offers, accepted, strict=False)
        ]
        own = offers[0] if offers else None
        judged = [] if own is None else list(_judgements(own.acts, run.attempt))
        return _Lineage(
            run=run,
            hops=(*hops, Hop(run=line[-1].id, agent=line[-1].agent)),
            offered=offers[-1].seq if offers else None,
            may=may_under(self._view, read_receipt(openings[0]), ()) if own is None else own.may,
            approvals=tuple(fact for offered in offers for fact in offered.decided),
            standing=_standing(judged),
            judgements=tuple(fact for _, fact in judged),
            rests_on=(*openings, *(stored for offered in offers for stored in offered.rests_on)),
        )

    def _offered(self, handoff: HandoffId) -> _Offered:
        if handoff not in self._offers:
            self._offers[handoff] = self._read_offer(handoff)
        return self._offers[handoff]

    def _read_offer(self, handoff: HandoffId) -> _Offered:
        known = self._view.get_handoff(handoff)
        offer, body = offer_of(self._view, known)
        texts = read_texts(self._view, offer)
        source = read_source(self._view, offer)
        brief = brief_of(self._view, offer)
        acts = list(self._view.find_receipts(ReceiptQuery(stream=StreamId(handoff))))
        receipts = tuple(map(read_receipt, acts))
        hop = Hop(
            run=known.parent,
            agent=known.to,
            handoff=handoff,
            offer=offer.id,
            task=texts.get(TASK),
            link=_link(source),
            subagent=None if source is None else source.subagent,
        )
        return _Offered(
            hop=hop,
            seq=offer.seq,
            may=may_under(self._view, offer, None if brief is None else brief.may),
            decided=tuple(self._decisions(offer, body, receipts)),
            acts=receipts,
            rests_on=(self._view.get_receipt(offer.id), *acts),
        )

    def _decisions(self, offer: Receipt, body: HandoffInitiated, acts: Sequence[Receipt]) -> Iterator[Fact]:
        if body.state is State.HELD:
            yield Fact(label="held", text="from the beginning", receipt=offer.id, at=offer.at)
        for receipt in acts:
            if isinstance(receipt.body, HandoffHeld | HandoffBacked | HandoffApproved | HandoffDenied):
                fact = decision(receipt, read_texts(self._view, receipt))
                if fact is not None:
                    yield fact

    def _said(self, root: RunId, before: int) -> _Said | None:
        """Return what the human had said last when something happened in the root's stream."""
        if root not in self._statements:
            self._statements[root] = list(self._read_statements(root))
        said = self._statements[root]
        return next((one for one in reversed(said) if one.seq < before), said[0] if said else None)

    def _read_statements(self, root: RunId) -> Iterator[_Said]:
        for stated in self._view.find_statements(root):
            holder = self._view.get_content(stated.item).receipt
            if holder is None:
                continue
            stored = self._view.get_receipt(holder)
            receipt = read_receipt(stored)
            ref = next((ref for ref in receipt.content.values() if ref.id == stated.item), None)
            # What was said to a run further down is not what the root went by.
            if ref is not None and receipt.stream == StreamId(root):
                at = when(self._view, receipt)
                yield _Said(seq=receipt.seq, at=at, ref=ref, stored=stored)


def find_request(
    view: LedgerView, stored: StoredReceipt, receipt: Receipt, call: CallId
) -> tuple[StoredReceipt, Receipt]:
    """Return the receipt of a call's request, most often the one before that of its outcome; else what was given."""
    for seq in range(receipt.seq, 0, -1):
        try:
            before = view.get_receipt_at(receipt.stream, seq)
        except NotFoundError:
            continue  # somebody deleted it; the check of the receipts says so
        # Its bytes are read only if they could be the request: a run may have made many calls at once.
        if call.encode() in before.payload:
            found = read_receipt(before)
            if isinstance(found.body, ToolRequested | ToolDenied) and found.body.call == call:
                return before, found
    return stored, receipt


def _link(source: Source | None) -> Link:
    if source is None:
        return Link.CERTAIN
    return _LINKS.get(source.link or "", Link.IMPORTED if source.imported else Link.CERTAIN)


def _judgements(acts: Sequence[Receipt], attempt: int) -> Iterator[tuple[Standing, Fact]]:
    """Yield how the result of one attempt was judged, and what each judgement makes of it."""
    for receipt in acts:
        body = receipt.body
        match body:
            case VerificationPassed() | VerificationFailed() | VerificationRepeated() if body.attempt == attempt:
                passed = body.passed if isinstance(body, VerificationRepeated) else isinstance(body, VerificationPassed)
                standing = Standing.VERIFIED if passed else Standing.REFUTED
                label = f"{'again ' * isinstance(body, VerificationRepeated)}{standing}"
                judge = f"by {body.by}, {body.method}"
                yield standing, Fact(label=label, text=judge, receipt=receipt.id, at=receipt.at)
            case VerificationWaived() if body.attempt == attempt:
                accepted = f"by {body.by}, unverified"
                yield Standing.UNVERIFIED, Fact(label="accepted", text=accepted, receipt=receipt.id, at=receipt.at)
            case _:
                continue


def _standing(judged: Sequence[tuple[Standing, Fact]]) -> Standing:
    # The verdict is the first one that says something; what is checked again stands beside it.
    return next((standing for standing, _ in judged if standing is not Standing.UNVERIFIED), Standing.UNVERIFIED)
