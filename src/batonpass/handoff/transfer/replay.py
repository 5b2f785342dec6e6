"""Replaying: what is finished is gone through again, and nothing happens."""

from batonpass.errors import NotFoundError
from batonpass.handoff.calls.past_calls import read_resumption
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.transfer.read_offer import read_offer
from batonpass.ledger.standing import Working
from batonpass.model.ids import HandoffId


def replayed(desk: Desk, handoff: HandoffId) -> Holding:
    """Return a finished handoff as a run that gives back what was recorded, and does nothing."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        if known.run is None:
            raise NotFoundError("attempt at handoff", handoff)
        offer = read_offer(view, known)
        run = view.get_run(known.run)
        resumption = read_resumption(view, known)
    holding = Holding(working=Working(run=run), baton=offer.baton, resumption=resumption, replaying=True)
    holding.add(*offer.baton.items)
    return holding
