"""A run, as runners and programs need it: below the faces that people see, so that those can let programs work."""

from collections.abc import Callable
from typing import Any, Protocol

from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item, ItemValue, Report
from batonpass.model.grants.effective_grant import EffectiveGrant


class HandedOff(Protocol):
    """Work that a program has handed on."""

    def result(self) -> Result:
        """Return what came of it so far."""
        ...

    def run(self) -> Result:
        """Let it be done here and now."""
        ...

    def wait(self) -> Result:
        """Wait until somebody has done it."""
        ...


class WorkingRun(Protocol):
    """One agent working once on one task; `LiveRun` is one."""

    @property
    def _desk(self) -> Desk: ...

    @property
    def id(self) -> RunId:
        """Return the run's id."""
        ...

    @property
    def agent(self) -> AgentId:
        """Return who works."""
        ...

    @property
    def attempt(self) -> int:
        """Return the attempt number, from 1."""
        ...

    @property
    def task(self) -> str:
        """Return the exact task."""
        ...

    @property
    def parent(self) -> RunId | None:
        """Return the run that handed its task on; None for a root."""
        ...

    @property
    def baton(self) -> Baton:
        """Return what it was given; a root was given nothing."""
        ...

    def grant(self) -> EffectiveGrant:
        """Return what it may do now."""
        ...

    @property
    def earlier(self) -> Resumption:
        """Return what earlier attempts finished, left in doubt and handed off."""
        ...

    @property
    def reported(self) -> Report | None:
        """Return its report, if it has given one."""
        ...

    @property
    def call(self) -> Callable[..., Any]:
        """Call a tool."""
        ...

    @property
    def attach(self) -> Callable[..., Item]:
        """Keep a file or a result."""
        ...

    @property
    def hand_off(self) -> Callable[..., HandedOff]:
        """Hand a task on."""
        ...

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Write items down."""
        ...

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact by its name."""
        ...

    def checkpoint(self, messages: object) -> None:
        """Keep what the next attempt needs to go on from here."""
        ...

    def messages(self) -> object | None:
        """Return what was kept for the next attempt."""
        ...

    def report(self, result: Report) -> None:
        """Say what comes of the task."""
        ...

    def close(self) -> None:
        """End the run."""
        ...

    def fail(self, error: BaseException) -> None:
        """End the run without delivering."""
        ...
