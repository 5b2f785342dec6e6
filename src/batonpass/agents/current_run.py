"""The run of the current code: a tool that hands off needs it, and a model cannot choose it."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from batonpass.agents.agent_tools import Work
from batonpass.aio import AsyncRun
from batonpass.errors import InvalidValueError
from batonpass.store.port import LedgerStore


@dataclass(frozen=True, slots=True)
class Current:
    """The run that an agent works on, the store of its ledger, and who works for the agents that it hands to."""

    run: AsyncRun
    store: LedgerStore
    works: tuple[Callable[[str], Work], ...] = ()


CURRENT: Final[ContextVar[Current | None]] = ContextVar("batonpass_agents_run", default=None)


def current() -> Current:
    """Return the current run. Raises `InvalidValueError` outside of a running agent."""
    found = CURRENT.get()
    if found is None:
        raise InvalidValueError("run", "there is none here: call this from a tool of a running agent, or pass run=")
    return found
