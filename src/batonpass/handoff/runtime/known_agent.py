"""Whether the agent that workers are to run is known: a misspelled name would wait for ever."""

from difflib import get_close_matches
from typing import Final

from batonpass.errors import UnknownAgentError
from batonpass.errors.handoff import UnknownAgentWarning
from batonpass.handoff.runtime.caller_warning import warn_caller
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.ids import AgentId

_MOST_ALIKE: Final = 3


def require_known(desk: Desk, agent: AgentId, *, refuses: bool) -> None:
    """Warn, once for each agent, if nobody has registered or introduced an agent here and it never ran in this ledger.

    Raises `UnknownAgentError` instead if a policy refuses that.
    """
    if agent in desk.known_agents:
        return
    with desk.store.view() as view:
        ran = next(iter(view.find_runs(agent=agent, limit=1)), None) is not None
    if not ran:
        alike = tuple(get_close_matches(agent, desk.cards, _MOST_ALIKE))
        if refuses:
            raise UnknownAgentError(agent, tuple(desk.cards), alike)
        warn_caller(UnknownAgentWarning(agent, alike))
    desk.known_agents.add(agent)
