"""Seats: where an agent of a framework works beside others, who put it there, and which event ends its work."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.errors import BatonpassError, CallError, GrantError, HandoffError
from batonpass.model.base.ids import as_agent


class SeatEnd(StrEnum):
    """The event that ends the work of an agent."""

    RUN = "run"  # the invocation: of the agent that a person talks to, and of those to which that was passed
    TOOL = "tool"  # the tool in which the agent works has returned
    TASK = "task"  # the framework answers the call that gave the agent its task
    AGENT = "agent"  # the agent has finished: a step of a workflow


@dataclass(eq=False)
class AgentSeat:
    """An agent at work, or about to be."""

    agent: str
    work: AgentWork
    ends: SeatEnd
    kept: Sequence[Any] = ()  # of an attempt that goes on: the earlier input of its model
    sender: "AgentSeat | None" = None
    source: Any = None  # the framework's object, from when it begins
    said: str = ""
    ended: bool = False
    refusal: BatonpassError | None = None  # why it could not begin
    refused: list[str] = field(default_factory=list)  # sentences for its model about tasks that nobody was given
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)  # tasks that others took from it

    def offer(self, to: str, task: str, ends: SeatEnd) -> "AgentSeat":
        """Offer a task to another agent; return its seat, which is still empty.

        The same task is the same handoff until somebody took it, so that one that was held or that an earlier process
        finished is found again. Raises `HandoffError` and `GrantError`.
        """
        self.work.open()
        taken = self.asked[to, task]
        child = self.work.offer(as_agent(to), task, key=f"again:{taken}" if taken else None)
        return AgentSeat(to, child, ends, sender=self)

    def take(self, task: str) -> None:
        """Note that this seat's agent took the task that its sender gave it."""
        if self.sender is not None:
            self.sender.asked[self.agent, task] += 1

    def close(self, result: str) -> None:
        """End the work with a result; twice is once. Raises `BatonpassError` if it is enforced and must not be used."""
        if not self.ended:
            self.ended = True
            self.work.close(result)

    def abort(self, error: BaseException) -> None:
        """End the work by an error; twice is once."""
        if not self.ended:
            self.ended = True
            self.work.abort(cause_of(error))


def take_offer(offered: list[AgentSeat], agent: str) -> tuple[AgentSeat | None, list[AgentSeat]]:
    """Take the seat that was offered to an agent which begins now; return it, and those of its sender that are dropped.

    A framework carries out one transfer of a turn.
    """
    taken = next((seat for seat in offered if seat.agent == agent), None)
    if taken is None:
        return None, []
    offered.remove(taken)
    if taken.ends is not SeatEnd.RUN:
        return taken, []
    dropped = [seat for seat in offered if seat.ends is SeatEnd.RUN and seat.sender is taken.sender]
    for seat in dropped:
        offered.remove(seat)
    return taken, dropped


def cause_of(error: BaseException) -> BaseException:
    """Return our own error inside an error of a framework, which wraps the errors of others; else the error itself."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, BatonpassError):
            return seen
        seen = seen.__cause__
    return error


def refusal_of(error: BaseException) -> BatonpassError | None:
    """Return the refusal behind an error, if there is one: a model is told why something was not done."""
    cause = cause_of(error)
    return cause if isinstance(cause, CallError | GrantError | HandoffError) else None
