"""The way from a call up to the human: agent, task, grant, approval and verdict."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_proof import Witness
from batonpass.accounts.blame.blame_values import BlameHop, Maker, TaskLink
from batonpass.accounts.blame.blame_words import read_command
from batonpass.accounts.handoff.reasoning import read_reasoning
from batonpass.accounts.why.why_values import Fact
from batonpass.attribution.changes.change import FileChange
from batonpass.model.base.content_names import INTENT, TASK
from batonpass.model.base.ids import CallId, HandoffId, RunId, StreamId
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallRecord, read_call
from batonpass.records.grant import brief_of, may_under, read_credential, read_permits
from batonpass.records.handoff import HandoffRecord, ResultVerdict, find_answering, read_handoff, standing_of
from batonpass.records.hold import CallLeave, HoldRecord, find_leave
from batonpass.records.lineage import find_ancestors
from batonpass.records.source import Source, happened_at, read_source, when
from batonpass.records.text import read_contents, read_receipt, read_texts
from batonpass.store.port import LedgerView

_LINKS: Final = {"inferred": TaskLink.INFERRED, "unknown": TaskLink.UNKNOWN}


class _Offered(Struct, frozen=True, kw_only=True):
    """One handoff on the way: the hop, its record, and its grant."""

    hop: BlameHop
    record: HandoffRecord
    may: tuple[str, ...] | None


class _Lineage(Struct, frozen=True, kw_only=True):
    """A run with all runs above it, and the receipts that say so."""

    run: Run
    hops: tuple[BlameHop, ...]
    offers: tuple[_Offered, ...]  # its own first
    may: tuple[str, ...] | None
    rests_on: tuple[StoredReceipt, ...]

    @property
    def offered(self) -> int | None:
        """Return the seq of the root's offer that led here; None for the root itself."""
        return self.offers[-1].record.offer.seq if self.offers else None

    @property
    def handed(self) -> tuple[HoldRecord, ...]:
        """Return the handoffs that were held at their offer."""
        return tuple(hold for one in self.offers for hold in one.record.holds if hold.hold.call is None)


class _Said(Struct, frozen=True, kw_only=True):
    """Something the human said, and its place in the root's stream."""

    seq: int
    at: datetime
    ref: ContentRef
    stored: StoredReceipt


class Makers:
    """Finds the makers of things; receipts that they share are read once."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._witness = Witness(view)
        self._lineage = cache(self._read_lineage)
        self._offered = cache(self._read_offer)
        self._statements = cache(self._read_statements)

    def of_call(
        self, stored: StoredReceipt, receipt: Receipt, call: CallId, changes: Sequence[FileChange] = ()
    ) -> Maker:
        """Return the maker of a call, given a receipt about it."""
        record = read_call(self._view, receipt)
        if record is None:
            # The request was deleted. The proof reports that.
            return self._made(receipt, (stored,), "unknown", changes=changes, call=call)
        leave = find_leave(self._view, record)
        own = [record.receipt, *(() if record.ending is None else (record.ending,))]
        own += [] if leave.hold is None else [leave.hold.receipt, *(one.receipt for one in leave.approvals)]
        rests_on = [self._view.get_receipt(one.id) for one in own]
        made = self._made(receipt, (stored, *rests_on), record.tool, changes=changes, record=record, leave=leave)
        return replace(made, command=read_command(self._view, record))

    def of_receipt(self, stored: StoredReceipt, receipt: Receipt, did: str) -> Maker:
        """Return the maker of something that is not a call, given the receipt of a run."""
        return self._made(receipt, (stored,), did)

    def _made(
        self,
        receipt: Receipt,
        own: Sequence[StoredReceipt],
        tool: str,
        *,
        changes: Sequence[FileChange] = (),
        call: CallId | None = None,
        record: CallRecord | None = None,
        leave: CallLeave | None = None,
    ) -> Maker:
        lineage = self._lineage(RunId(receipt.stream))
        said = self._said(lineage.run.root, receipt.seq if lineage.offered is None else lineage.offered)
        source = read_source(self._view, receipt)
        heard = () if said is None else (said.stored,)
        rests_on = {stored.id: stored for stored in (*own, *lineage.rests_on, *heard)}
        verdicts = self._verdicts(lineage, record)
        return Maker(
            call=call if record is None else record.id,
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
            standing=standing_of(verdicts),
            judgements=tuple(
                Fact(label=one.label, text=one.words, receipt=one.receipt.id, at=one.receipt.at) for one in verdicts
            ),
            proof=self._witness.prove(rests_on.values()),
            record=record,
            leave=leave,
            handed=lineage.handed,
            permits=() if record is None else read_permits(self._view, record) or (),
            credential=None if record is None else read_credential(self._view, record),
            in_doubt=record is not None and record.is_made and record.ended is None,
        )

    def _verdicts(self, lineage: _Lineage, record: CallRecord | None) -> tuple[ResultVerdict, ...]:
        """Return the verdicts on this work: on its own attempt, or on a later one that kept it."""
        if not lineage.offers:
            return ()
        own = lineage.offers[0].record
        if record is None or own.handoff.attempt <= lineage.run.attempt:
            return own.verdicts(lineage.run.attempt)
        return own.verdicts(find_answering(self._view, own, record))

    def _read_lineage(self, of: RunId) -> _Lineage:
        run = self._view.get_run(of)
        line = (run, *find_ancestors(self._view, run))
        offers = [self._offered(one.handoff) for one in line if one.handoff is not None]
        openings = [self._view.get_receipt_at(StreamId(one.id), 1) for one in line]
        # The offer has the source if it was imported, the acceptance if a hook recorded it.
        accepted = [read_source(self._view, read_receipt(opening)) for opening in openings]
        hops = [
            replace(
                offered.hop,
                run=one.id,
                agent=one.agent,
                sender=above.agent,
                link=offered.hop.link if source is None or source.link is None else _link(source),
            )
            for one, above, offered, source in zip(line, line[1:], offers, accepted, strict=False)
        ]
        return _Lineage(
            run=run,
            hops=(*hops, BlameHop(run=line[-1].id, agent=line[-1].agent)),
            offers=tuple(offers),
            may=offers[0].may if offers else may_under(self._view, read_receipt(openings[0]), ()),
            rests_on=(*openings, *(stored for offered in offers for stored in offered.record.stored)),
        )

    def _read_offer(self, handoff: HandoffId) -> _Offered:
        record = read_handoff(self._view, self._view.get_handoff(handoff))
        source = read_source(self._view, record.offer)
        brief = brief_of(self._view, record.offer)
        hop = BlameHop(
            run=record.handoff.parent,
            agent=record.handoff.to,
            handoff=handoff,
            offer=record.offer.id,
            task=read_texts(self._view, record.offer).get(TASK),
            link=_link(source),
            subagent=None if source is None else source.subagent,
            reasoning=read_reasoning(self._view, record.offer),
        )
        may = may_under(self._view, record.offer, None if brief is None else brief.may)
        return _Offered(hop=hop, record=record, may=may)

    def _said(self, root: RunId, before: int) -> _Said | None:
        """Return the human's latest words before a place in the root's stream."""
        said = self._statements(root)
        return next((one for one in reversed(said) if one.seq < before), said[0] if said else None)

    def _read_statements(self, root: RunId) -> list[_Said]:
        found = []
        for stated in self._view.find_statements(root):
            holder = self._view.get_content(stated.item).receipt
            if holder is None:
                continue
            stored = self._view.get_receipt(holder)
            receipt = read_receipt(stored)
            ref = next((ref for ref in receipt.content.values() if ref.id == stated.item), None)
            # The root did not act on words to a run further down.
            if ref is not None and receipt.stream == StreamId(root):
                found.append(_Said(seq=receipt.seq, at=when(self._view, receipt), ref=ref, stored=stored))
        return found


def _link(source: Source | None) -> TaskLink:
    if source is None:
        return TaskLink.CERTAIN
    return _LINKS.get(source.link or "", TaskLink.IMPORTED if source.imported else TaskLink.CERTAIN)
