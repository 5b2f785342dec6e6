"""The run that this code works for: what a tool that hands off needs to know, and no model can choose."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from batonpass.aio import AsyncRun
from batonpass.errors import InvalidValueError
from batonpass.store.port import LedgerStore


@dataclass(frozen=True, slots=True)
class Current:
    """A run that an agent works on, and where it is recorded."""

    run: AsyncRun
    store: LedgerStore


CURRENT: Final[ContextVar[Current | None]] = ContextVar("batonpass_agents_run", default=None)


def current() -> Current:
    """Return what this code works for. Raises `InvalidValueError` outside of a running agent."""
    found = CURRENT.get()
    if found is None:
        raise InvalidValueError("run", "there is none here: call this from a tool of a running agent, or pass run=")
    return found
