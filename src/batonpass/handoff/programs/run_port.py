"""A run as runners and programs see it. This port is below `LiveRun`, so that `LiveRun` can use programs."""

from collections.abc import Callable
from typing import Any, Protocol

from batonpass.handoff.history.baton_revision import BatonRevision
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item, ItemValue, Report
from batonpass.model.grants.effective_grant import EffectiveGrant


class HandedOff(Protocol):
    """A handoff of a program."""

    def result(self) -> Result:
        """Return the result so far."""
        ...

    def run(self) -> Result:
        """Run the handoff here and now."""
        ...

    def wait(self) -> Result:
        """Wait until somebody has worked on it."""
        ...


class WorkingRun(Protocol):
    """One agent working once on one task. `LiveRun` is one."""

    @property
    def _desk(self) -> Desk: ...

    @property
    def id(self) -> RunId:
        """Return the id of the run."""
        ...

    @property
    def agent(self) -> AgentId:
        """Return the agent that works."""
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
        """Return the run that handed this task off; None for a root run."""
        ...

    @property
    def baton(self) -> Baton:
        """Return the baton. A root run has none."""
        ...

    def traceparent(self) -> str:
        """Return the `traceparent` header for requests that the run makes."""
        ...

    def grant(self) -> EffectiveGrant:
        """Return the present rights of the run."""
        ...

    @property
    def earlier(self) -> Resumption:
        """Return the finished calls, the calls in doubt and the handoffs of earlier attempts."""
        ...

    @property
    def reported(self) -> Report | None:
        """Return its report; None if there is none."""
        ...

    @property
    def call(self) -> Callable[..., Any]:
        """Call a tool."""
        ...

    @property
    def attach(self) -> Callable[..., Item]:
        """Attach a file or a text."""
        ...

    @property
    def hand_off(self) -> Callable[..., HandedOff]:
        """Hand a task off."""
        ...

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Record items."""
        ...

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact by its name."""
        ...

    def checkpoint(self, messages: object) -> None:
        """Save the state that the next attempt needs to go on from here."""
        ...

    def messages(self) -> object | None:
        """Return the state in the last checkpoint."""
        ...

    def report(self, result: Report) -> None:
        """Set the report of the run."""
        ...

    def news(self) -> tuple[BatonRevision, ...]:
        """Return the revisions of the baton that the run has not acknowledged."""
        ...

    def acknowledge(self, revision: int) -> None:
        """Acknowledge a revision, and those before it."""
        ...

    def close(self) -> None:
        """Close the run."""
        ...

    def fail(self, error: BaseException) -> None:
        """End the run without a result."""
        ...
