"""Revisions of a baton: the items that travel with a handoff now, and who knows them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import chain

from msgspec import Struct

from batonpass.model.base.ids import Digest, PrincipalId, ReceiptId, RunId, StreamId
from batonpass.model.base.kinds import Carried, CarriedFate, Kind
from batonpass.model.bodies.body import (
    Body,
    HandoffAccepted,
    HandoffAnswered,
    HandoffInitiated,
    HandoffRevised,
    RunAcknowledged,
)
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest


class Travelling(Struct, frozen=True):
    """The items of one revision, and the fates that their receiver was told."""

    carries: tuple[Carried, ...]
    fates: tuple[CarriedFate, ...]


def travelling(initiated: HandoffInitiated, acts: Iterable[Body]) -> Travelling:
    """Return the items that travel with a handoff after all revisions, in order."""
    carries = {ref.item: ref for ref in initiated.carries}
    fates = {fate.item: fate for fate in initiated.fates}
    for act in acts:
        if isinstance(act, HandoffRevised):
            carries.update((ref.item, ref) for ref in act.carries)
            fates.update((fate.item, fate) for fate in act.fates)
            for item in act.drops:
                carries.pop(item, None)
                fates.pop(item, None)
    return Travelling(tuple(carries.values()), tuple(fates.values()))


class RevisionRecord(Struct, frozen=True, kw_only=True):
    """One revision of a baton after the offer: an answer, or results that no longer stand."""

    number: int  # from 1
    receipt: ReceiptId
    digest: Digest
    by: PrincipalId
    at: datetime
    body: HandoffAnswered | HandoffRevised


def find_revisions(view: LedgerView, handoff: Handoff) -> Iterator[RevisionRecord]:
    """Yield the revisions of a handoff's baton, in order."""
    stream = StreamId(handoff.id)
    kinds = (Kind.HANDOFF_ANSWERED, Kind.HANDOFF_REVISED)
    found = chain.from_iterable(view.find_receipts(ReceiptQuery(stream=stream, kind=kind)) for kind in kinds)
    for stored in sorted(found, key=lambda one: one.seq):
        receipt = read_receipt(stored)
        if isinstance(receipt.body, HandoffAnswered | HandoffRevised):
            yield RevisionRecord(
                number=receipt.body.revision,
                receipt=receipt.id,
                digest=digest(stored.payload),
                by=receipt.body.by,
                at=receipt.at,
                body=receipt.body,
            )


def known_to(view: LedgerView, run: RunId, revisions: Iterable[RevisionRecord]) -> tuple[int, int]:
    """Return two revisions that a run has signed for: the one that it began with, and the latest it acknowledged."""
    accepted = read_receipt(view.get_receipt_at(StreamId(run), 1)).body
    baton = accepted.baton if isinstance(accepted, HandoffAccepted) else None
    began = next((one.number for one in revisions if one.digest == baton), 0)
    query = ReceiptQuery(stream=StreamId(run), kind=Kind.RUN_ACKNOWLEDGED)
    signed = (read_receipt(stored).body for stored in view.find_receipts(query))
    return began, max((body.revision for body in signed if isinstance(body, RunAcknowledged)), default=began)


class Awareness(StrEnum):
    """Whether the agent at work on a handoff knows a revision of its baton."""

    BEGAN_WITH = "began-with"  # an attempt began with it
    ACKNOWLEDGED = "acknowledged"  # it was made while an attempt worked, and that attempt has acknowledged it
    TOLD = "told"  # likewise, and the attempt has not acknowledged it yet
    IGNORED = "ignored"  # likewise, and the attempt ended without acknowledging it
    WAITING = "waiting"  # nobody has begun since


def find_aware(
    view: LedgerView, revisions: Iterable[RevisionRecord], runs: Iterable[Run]
) -> Iterator[tuple[RevisionRecord, Awareness, Run | None]]:
    """Yield each revision with whether the attempts at its handoff know it, and the attempt that this is about."""
    all_of_them = tuple(revisions)
    known = [(run, *known_to(view, run.id, all_of_them)) for run in runs]
    for revision in all_of_them:
        yield revision, *_awareness(revision, known)


def _awareness(revision: RevisionRecord, known: list[tuple[Run, int, int]]) -> tuple[Awareness, Run | None]:
    for run, began, acknowledged in known:
        if began >= revision.number:
            return Awareness.BEGAN_WITH, run
        if acknowledged >= revision.number:
            return Awareness.ACKNOWLEDGED, run
    during = next((run for run, *_ in reversed(known) if run.started_at <= revision.at), None)
    if during is None or (during.ended_at is not None and during.ended_at <= revision.at):
        return Awareness.WAITING, None
    return (Awareness.TOLD if during.state is RunState.OPEN else Awareness.IGNORED), during
