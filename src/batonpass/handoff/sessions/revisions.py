"""Tell a running run which results in its baton no longer stand, and record that it knows.

A revision is written when a result is refuted or redone (`inputs.tell_open`). The attempt finds it when it looks:
programs and models are shown it with their next answer, Python code asks for it. Its acknowledgement countersigns the
revision. Without one, the result of the attempt is stale. A root has no baton; it is told in the same way about items
that came along from earlier sessions (`session_news`).
"""

from batonpass.errors import NotFoundError
from batonpass.handoff.history.baton_revision import LOOK_EVERY, BatonRevision
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.session_news import acknowledge_session_news, find_session_news
from batonpass.handoff.taint.intake import take_in
from batonpass.model.base.ids import Digest
from batonpass.model.bodies.body import HandoffRevised, RunAcknowledged
from batonpass.records.revision import RevisionRecord, find_revisions, known_to
from batonpass.records.stale_results import find_told
from batonpass.store.port import LedgerView


def find_unacknowledged(desk: Desk, holding: Holding) -> tuple[BatonRevision, ...]:
    """Return the revisions of a run's baton that it has not acknowledged, in order."""
    handoff = holding.working.run.handoff
    if holding.replaying:
        return ()
    desk.revised.discard(handoff or holding.id)
    if handoff is None:
        return find_session_news(desk, holding)
    with desk.store.view() as view:
        return tuple(_tell(view, holding, one) for one in _unknown(view, holding))


def look_for_news(desk: Desk, holding: Holding) -> tuple[BatonRevision, ...]:
    """Return the same, but look only if it was revised in this process, or if the last look was a while ago."""
    given = holding.working.run.handoff or holding.id
    if holding.replaying or (given == holding.id and not holding.session.roots):
        return ()
    now = desk.clock.now()
    if holding.looked_for_news is None:
        holding.looked_for_news = holding.working.run.started_at
    if given not in desk.revised and now - holding.looked_for_news < LOOK_EVERY:
        return ()
    found = find_unacknowledged(desk, holding)
    # While there is something that it has not acknowledged, it is reminded of it with each answer.
    if found:
        desk.revised.add(given)
    holding.looked_for_news = now
    return found


def acknowledge(desk: Desk, holding: Holding, number: int | None) -> None:
    """Record that a run knows a revision of its baton and all before it; without a number, the latest.

    Items that no longer travel leave its notes, and their replacements join them, with their taint. Raises
    `NotFoundError` if there is no such revision.
    """
    handoff = holding.working.run.handoff
    if handoff is None:
        acknowledge_session_news(desk, holding, number)
        return
    with desk.store.view() as view:
        unknown = _unknown(view, holding)
        if number is not None and number not in {one.number for one in unknown}:
            raise NotFoundError("revision to acknowledge", str(number))
        chosen = [one for one in unknown if number is None or one.number <= number]
        offer = read_offer(view, view.get_handoff(handoff))
    if not chosen:
        return
    desk.revised.discard(handoff)
    bodies = [one.body for one in chosen if isinstance(one.body, HandoffRevised)]
    # Before it is acknowledged: content that is read from now on may come from outside.
    take_in(desk, holding, [source for body in bodies for source in body.taint], handoff=handoff)
    fill_gap(desk, holding)
    last = chosen[-1]
    desk.recording.record(
        holding.working, RunAcknowledged(run=holding.id, revision=last.number, baton=Digest(last.digest))
    )
    dropped = {item for body in bodies for item in body.drops}
    with holding.lock:
        for item in dropped:
            holding.notes.pop(item, None)
    if len(chosen) == len(unknown):
        holding.baton = offer.baton
    carried = {ref.item for body in bodies for ref in body.carries}
    holding.add(*(item for item in offer.baton.items if item.id in carried))


def _unknown(view: LedgerView, holding: Holding) -> list[RevisionRecord]:
    handoff = holding.working.run.handoff
    revisions = () if handoff is None else tuple(find_revisions(view, view.get_handoff(handoff)))
    if not revisions:
        return []
    _, known = known_to(view, holding.id, revisions)
    return [one for one in revisions if one.number > known]


def _tell(view: LedgerView, holding: Holding, revision: RevisionRecord) -> BatonRevision:
    body = revision.body
    fallen, instead = find_told(view, holding.root, body) if isinstance(body, HandoffRevised) else ((), ())
    return BatonRevision(number=revision.number, by=revision.by, at=revision.at, fallen=fallen, replaced_by=instead)
