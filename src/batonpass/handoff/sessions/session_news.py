"""Tell a running root which items inherited from earlier sessions no longer stand, and record that it knows.

Nobody but its own relay writes to the stream of a root, so nothing is written for it when a result is refuted. It looks
by itself: the items with which it began are compared with the fates of their results. Each verdict is one revision of
these items. Its acknowledgement countersigns the verdict; then the items leave its notes, and the questions that the
next session would begin with join them.
"""

from collections.abc import Iterator, Mapping

from batonpass.errors import NotFoundError
from batonpass.handoff.history.baton_revision import BatonRevision
from batonpass.handoff.history.offers import author_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_items import record_items
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.session_state import read_session
from batonpass.handoff.transfer.inputs import tell_open
from batonpass.model.base.ids import ContentId, Digest, ReceiptId, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.baton.item_fate import KnownFate
from batonpass.model.baton.items import OpenQuestion
from batonpass.model.baton.session import ASKING, Stop
from batonpass.model.bodies.body import RunAcknowledged
from batonpass.records.inheritance import find_resumed
from batonpass.records.stale_results import TreeFates, title_of
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest


def find_session_news(desk: Desk, holding: Holding) -> tuple[BatonRevision, ...]:
    """Return the inherited items that no longer stand and are not acknowledged, verdict by verdict."""
    with desk.store.view() as view:
        return tuple(_tell(view, number, fallen) for number, fallen in _number(view, holding))


def acknowledge_session_news(desk: Desk, holding: Holding, number: int | None) -> None:
    """Record that a root knows a verdict on inherited items and all before it; without a number, all of them.

    Raises `NotFoundError` if there is no such revision, and for a root that began anew.
    """
    with desk.store.view() as view:
        if find_resumed(view, holding.id) is None:
            raise NotFoundError("baton of", holding.id)
        unknown = dict(_number(view, holding))
        if number is not None and number not in unknown:
            raise NotFoundError("revision to acknowledge", str(number))
        chosen = {one: fallen for one, fallen in unknown.items() if number is None or one <= number}
        signed = {one: _verdict_of(view, fallen) for one, fallen in chosen.items()}
        asked = [] if not chosen else _find_questions(view, desk, holding, chosen)
    if not chosen:
        return
    # Before it is acknowledged: whoever dies in between is told once more, and asks the same question once.
    if asked:
        record_items(desk, holding, asked, by=ASKING)
    fill_gap(desk, holding)
    for one, verdict in signed.items():
        desk.recording.record(holding.working, RunAcknowledged(run=holding.id, revision=one, baton=verdict))
    with holding.lock:
        for item in (item for fallen in chosen.values() for item in fallen):
            holding.notes.pop(item, None)
    desk.revised.discard(holding.id)
    # Whoever it handed off to before it knew, and after the verdict had been written to all others.
    tell_open(desk, holding.root, by=author_of(holding.agent))


def find_acknowledged(view: LedgerView, root: RunId) -> frozenset[ContentId]:
    """Return the items that came along to a root and that it knows to have fallen: it no longer goes by them."""
    known = {one.baton for one in _find_signed(view, root)}
    fates = TreeFates(view, root).inherited if known else {}
    return frozenset(item for item, fate in fates.items() if _digest(view, fate.refutation.receipt) in known)


def _number(view: LedgerView, holding: Holding) -> Iterator[tuple[int, Mapping[ContentId, KnownFate]]]:
    """Yield the fates that the root has not acknowledged, by verdict, with the number of each.

    A number never changes after it was first told: of two verdicts by two clocks, the later may have the older id.
    """
    known = {one.baton for one in _find_signed(view, holding.id)}
    found: dict[ReceiptId, dict[ContentId, KnownFate]] = {}
    for item, fate in TreeFates(view, holding.id).inherited.items():
        if _digest(view, fate.refutation.receipt) not in known:
            found.setdefault(fate.refutation.receipt, {})[item] = fate
    with holding.lock:
        told = holding.told_verdicts
        told += [verdict for verdict in sorted(found) if verdict not in told]
        before = known.difference(_digest(view, verdict) for verdict in told)  # acknowledged by an earlier process
        numbers = {verdict: number for number, verdict in enumerate(told, len(before) + 1)}
    yield from sorted(((numbers[verdict], fallen) for verdict, fallen in found.items()), key=lambda one: one[0])


def _find_signed(view: LedgerView, root: RunId) -> Iterator[RunAcknowledged]:
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(root), kind=Kind.RUN_ACKNOWLEDGED)):
        body = read_receipt(stored).body
        if isinstance(body, RunAcknowledged):
            yield body


def _digest(view: LedgerView, verdict: ReceiptId) -> Digest:
    return digest(view.get_receipt(verdict).payload)


def _verdict_of(view: LedgerView, fallen: Mapping[ContentId, KnownFate]) -> Digest:
    return _digest(view, next(iter(fallen.values())).refutation.receipt)


def _find_questions(
    view: LedgerView, desk: Desk, holding: Holding, chosen: Mapping[int, Mapping[ContentId, KnownFate]]
) -> list[OpenQuestion]:
    """Return the questions that the root has to decide or check again, as a session that began now would get them."""
    gone = {holding.notes[item].value for fallen in chosen.values() for item in fallen if item in holding.notes}
    resumed = find_resumed(view, holding.id)
    stops = [] if resumed is None else [Stop(RunId(head.run)) for head in resumed.roots]
    state = read_session(view, stops, desk.clock.now())
    known = {item.value for item in holding.notes.values()}
    asked = [one.question for one in state.revisit if one.decision in gone]
    asked += [one.question for one in state.checks if one.fallen]
    return [one for one in dict.fromkeys(asked) if one not in known]


def _tell(view: LedgerView, number: int, fallen: Mapping[ContentId, KnownFate]) -> BatonRevision:
    verdict = next(iter(fallen.values())).refutation
    told = tuple(f"{title_of(view, item)}: {fate.sentence}" for item, fate in fallen.items())
    return BatonRevision(number=number, by=verdict.by, at=verdict.at, fallen=told, replaced_by=())
