"""Agents: their cards and ceilings, how their latest work went, and their reputation with its reasons."""

from collections import Counter, defaultdict
from typing import Final

from batonpass.drift.recall import recall
from batonpass.errors import NotFoundError
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import AgentId
from batonpass.policy.policy_text import bounds_words
from batonpass.relay import cards_of, desk_of
from batonpass.server.page.request import PageRequest, Shown

_LATEST: Final = 500
_REMEMBERED: Final = 12


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


def show_agent(asked: PageRequest) -> Shown:
    """Return one agent: its ceiling, and the outcomes of its work by kind of task, with reasons.

    Raises `NotFoundError` if nobody has heard of it.
    """
    agent = AgentId(asked.names["agent"])
    card, grant = cards_of(asked.plane.relay).get(agent), desk_of(asked.plane.relay).gates.grants.get(agent)
    state = asked.counts.bring_up()
    with asked.looking() as view:
        memory = recall(view, agent=agent, limit=_REMEMBERED)
        has_worked = bool(memory.handoffs) or next(iter(view.find_handoffs(to=agent, limit=1)), None) is not None
    if card is None and grant is None and not has_worked:
        raise NotFoundError("agent", shorten(agent))
    return {
        "agent": agent,
        "card": card,
        "grant": grant,
        "bounds": [] if grant is None else [*bounds_words(grant)],
        "memory": memory,
        "state": state,
    }
