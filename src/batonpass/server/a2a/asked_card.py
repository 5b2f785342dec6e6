"""Which agent a request over A2A asks."""

from batonpass.model.base.ids import AgentId
from batonpass.model.baton.card import Card
from batonpass.relay import cards_of
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.control_plane import ControlPlane


def asked_card(plane: ControlPlane, settings: A2aSettings, named: str | None) -> Card | None:
    """Return the card of the agent that a request names; if it names none, the one at the well-known address."""
    cards = cards_of(plane.relay)
    if named is not None:
        return cards.get(AgentId(named))
    if settings.primary is not None:
        return cards.get(settings.primary)
    return next(iter(cards.values()), None)
