"""Agents: their cards and ceilings, and how their latest work went."""

from collections import Counter, defaultdict
from typing import Final

from batonpass.model.base.ids import AgentId
from batonpass.relay import cards_of
from batonpass.server.page.request import PageRequest, Shown

_LATEST: Final = 500


def list_agents(asked: PageRequest) -> Shown:
    """Return the agents that this server knows or that got work lately."""
    cards = cards_of(asked.plane.relay)
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with asked.looking() as view:
        for handoff in view.find_handoffs(limit=_LATEST):
            counted[handoff.to][str(handoff.state)] += 1
    names = sorted({*cards, *counted}, key=lambda name: (-counted[name].total(), name))
    return {
        "rows": [
            {
                "name": name,
                "card": cards.get(AgentId(name)),
                "total": counted[name].total(),
                "states": [(state, count) for state, count in counted[name].most_common()],
            }
            for name in names
        ],
        "latest": _LATEST,
    }
