"""The outcomes of earlier handoffs of a kind, for the briefing of the agent that takes the next one.

It is data with its provenance, never instructions, and the receiver gets only as much as it may read: its grant must
allow `recall:` and the kind of task, and nothing comes along that other readers were named for. The words of an earlier
handoff may repeat content from outside, so its sources come along too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batonpass.drift.closed_handoff import task_kind_of
from batonpass.drift.recall import RememberedHandoff, recall
from batonpass.errors import InvalidValueError
from batonpass.handoff.taint.intake import find_sources
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.base.kinds import Relation
from batonpass.model.base.label import Label, Source
from batonpass.model.baton.baton import Brief
from batonpass.model.bodies.body import HandoffCompleted, HandoffFailed, HandoffInitiated
from batonpass.model.grants.call import Call
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.ledger.run import Handoff
from batonpass.records.json_shapes import exact
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

RECALL: Final = "recall"  # the action that a grant names
MOST: Final = 6_000  # characters of all that is told
_LONGEST: Final = 400  # characters of one text
_LOOKED_AT: Final = 5  # times as many as are told, because some may be for other readers


@dataclass(frozen=True, slots=True)
class ReceiverMemory:
    """The memory of earlier handoffs that a receiver is told, and the sources from outside behind it."""

    text: str = ""
    sources: tuple[Source, ...] = ()


def remember_for(
    view: LedgerView, *, agent: AgentId, brief: Brief, relation: Relation, grant: EffectiveGrant, most: int
) -> ReceiverMemory:
    """Return the part of the latest handoffs of the same kind that an agent may read, as far as roll-ups go."""
    kind = task_kind_of(brief, relation)
    if most < 1 or not _may_recall(grant, kind):
        return ReceiverMemory()
    told: list[str] = []
    sources: dict[Source, None] = {}
    for one in recall(view, kind=kind, limit=most * _LOOKED_AT).handoffs:
        row = view.get_handoff(one.handoff)
        words = _told(one)
        if len(told) == most or sum(map(len, told)) + len(words) > MOST:
            break
        if all(label is None or label.may_read(f"agent:{agent}") for label in _labels(view, row)):
            told.append(words)
            sources |= dict.fromkeys(find_sources(view, one.handoff))
    return ReceiverMemory("\n\n".join(told), tuple(sources))


def _may_recall(grant: EffectiveGrant, kind: str) -> bool:
    """Return whether a run may read the outcomes of earlier handoffs of a kind. Without a grant, nothing forbids it."""
    if grant.may is None:
        return True
    try:
        asked = Call(tool=RECALL, action=RECALL, resource=kind)
        return read_scope(permit.text for permit in grant.may).allows(asked, grant.at)
    except InvalidValueError:
        return False  # a kind that no permit can name


def _labels(view: LedgerView, row: Handoff) -> Iterator[Label | None]:
    offer = read_receipt(view.get_receipt_at(StreamId(row.parent), row.seq)).body
    if isinstance(offer, HandoffInitiated):
        yield offer.label
    if row.run is not None:
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(row.run))):
            body = read_receipt(stored).body
            if isinstance(body, HandoffCompleted | HandoffFailed):
                yield body.label


def _told(one: RememberedHandoff) -> str:
    rows = [
        f"handoff {one.handoff} · {one.agent} · {one.task_kind} · closed {exact(one.closed_at)}",
        f"came to: {one.sentence}",
        f"task: {_short(one.task)}",
    ]
    rows += [f"constraint: {_short(text)}" for text in one.constraints]
    rows += [f"result: {_short(one.result)}"] if one.result else []
    rows += [f"why: {_short(one.reason)}"] if one.reason else []
    return "\n".join(rows)


def _short(text: str | None) -> str:
    if text is None:
        return "erased"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text):,} characters)"
