"""The native agent that is at work here: its tools need its run, and a model cannot choose another one."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from batonpass.agents.agent_tools import Work
from batonpass.aio import AsyncRun
from batonpass.errors import InvalidValueError
from batonpass.store.port import LedgerStore


@dataclass(frozen=True, slots=True)
class AgentAtWork:
    """The run that an agent works on, the store of its ledger, and who works for the agents that it hands to."""

    run: AsyncRun
    store: LedgerStore
    works: tuple[Callable[[str], Work], ...] = ()


AT_WORK: Final[ContextVar[AgentAtWork | None]] = ContextVar("batonpass_agents_run", default=None)

# The most agents that a chain may have, as those above allow it. Who hands on may be stricter, and not laxer.
DEPTH: Final[ContextVar[int | None]] = ContextVar("batonpass_agents_depth", default=None)


def depth_within(own: int | None) -> int | None:
    """Return how many agents a chain may have by a policy and by those above; None if nobody limits it."""
    above = DEPTH.get()
    return own if above is None else above if own is None else min(own, above)


def agent_at_work() -> AgentAtWork:
    """Return the agent that is at work here. Raises `InvalidValueError` outside of a running agent."""
    found = AT_WORK.get()
    if found is None:
        raise InvalidValueError("run", "there is none here: call this from a tool of a running agent, or pass run=")
    return found
