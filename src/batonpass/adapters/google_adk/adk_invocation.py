"""One invocation of an ADK runner: which agents are at work in it, and what was offered to which. It needs the extra.

An agent has a seat while it works. Its seat is known by the branch of the conversation and by its name, because the
same agent may work in several branches at once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from google.adk.agents import BaseAgent
from google.genai.types import Content

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.errors import BatonpassError, CallError, GrantError, HandoffError
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "google-adk"
NO_WORDS: Final = "(no words of a person)"


class SeatEnd(StrEnum):
    """What ends the work of an agent."""

    RUN = "run"  # the invocation: of the agent that a person talks to, and of those to which that was transferred
    TOOL = "tool"  # the tool in which the agent works has returned
    TASK = "task"  # the framework answers the call that gave the agent its task
    AGENT = "agent"  # the agent has finished: a step of a workflow agent


@dataclass(eq=False)
class AgentSeat:
    """An agent at work in one branch of an invocation, or about to be."""

    agent: str
    work: AgentWork
    ends: SeatEnd
    kept: Sequence[Content] = ()  # of an attempt that goes on: what its model was given before
    sender: "AgentSeat | None" = None
    source: BaseAgent | None = None  # the framework's object, from when it begins
    said: str = ""
    ended: bool = False
    refusal: BatonpassError | None = None  # why it could not begin
    refused: list[str] = field(default_factory=list)  # what its model is told about tasks that nobody was given
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


class AdkInvocation:
    """The agents at work in one invocation. Only the thread of its event loop changes it."""

    def __init__(self, words: str, user: str) -> None:
        self.words = words
        self.user = user
        self.said = ""
        self.seats: dict[tuple[str | None, str], AgentSeat] = {}
        self.offered: list[AgentSeat] = []  # by transfers and as tasks; their agents have not begun

    def take_offer(self, agent: str) -> tuple[AgentSeat | None, list[AgentSeat]]:
        """Return the seat that was offered to an agent which begins now, and other transfers of its sender: they drop.

        The framework carries out one transfer of a turn.
        """
        taken = next((seat for seat in self.offered if seat.agent == agent), None)
        if taken is None:
            return None, []
        self.offered.remove(taken)
        if taken.ends is not SeatEnd.RUN:
            return taken, []
        dropped = [seat for seat in self.offered if seat.ends is SeatEnd.RUN and seat.sender is taken.sender]
        self.offered = [seat for seat in self.offered if seat not in dropped]
        return taken, dropped

    def open_seats(self) -> list[AgentSeat]:
        """Return the seats of agents that have not finished, the latest first."""
        return [seat for seat in reversed(self.seats.values()) if not seat.ended]

    def sender_of(self, agent: BaseAgent) -> AgentSeat | None:
        """Return the seat that hands work to an agent which nobody asked: of its parent, else of the latest at work."""
        seats = self.open_seats()
        above = agent.parent_agent
        while above is not None:
            for seat in seats:
                if seat.source is above:
                    return seat
            above = above.parent_agent
        return seats[0] if seats else None

    def close(self) -> None:
        """End what is still at work, the latest first, with what was said last."""
        for seat in self.open_seats():
            seat.close(self.said)

    def abort(self, error: BaseException) -> None:
        """End what is still at work by an error, the latest first."""
        for seat in self.open_seats():
            seat.abort(error)


# The seat in whose tool we are: a runner that is started there works for its agent.
CALLER: Final[ContextVar[AgentSeat | None]] = ContextVar("batonpass_google_adk_caller", default=None)
# The seat of the agent that is to begin next, in this tool or because it goes on.
EXPECTED: Final[ContextVar[AgentSeat | None]] = ContextVar("batonpass_google_adk_expected", default=None)


def words_of(content: Content | None) -> str:
    """Return the words of a message."""
    parts = (content.parts or ()) if content is not None else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def task_of(arguments: Mapping[str, Any]) -> str:
    """Return the task in the arguments of a call that asks an agent: its request alone, else all of them."""
    request = arguments.get("request")
    if isinstance(request, str) and set(arguments) == {"request"}:
        return request
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)


def text_of(value: object) -> str:
    """Return what an agent gave back, as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def cause_of(error: BaseException) -> BaseException:
    """Return our own error behind an error of the framework, which wraps what plugins raise; else the error itself."""
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
