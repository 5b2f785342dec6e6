"""One invocation of an ADK runner: the agents at work in it, and the open offers of each. It needs the extra.

An agent has a seat while it works. Its seat is known by the branch of the conversation and by its name, because the
same agent may work in several branches at once.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from google.adk.agents import BaseAgent
from google.genai.types import Content

from batonpass.adapters.frameworks.agent_seat import AgentSeat

FRAMEWORK: Final = "google-adk"
NO_WORDS: Final = "(no words of a person)"


class AdkInvocation:
    """The agents at work in one invocation. Only the thread of its event loop changes it."""

    def __init__(self, words: str, user: str) -> None:
        self.words = words
        self.user = user
        self.said = ""
        self.seats: dict[tuple[str | None, str], AgentSeat] = {}
        self.offered: list[AgentSeat] = []  # by transfers and as tasks; their agents have not begun
        self._task: asyncio.Task[Any] | None = None
        self._abandoned: Callable[[asyncio.Task[Any]], None] | None = None

    def watch(self, abandoned: Callable[["asyncio.Task[Any]"], None]) -> None:
        """Be told if the task that works on it is over before it is: plugins are not told of a cancellation."""
        self._task, self._abandoned = asyncio.current_task(), abandoned
        if self._task is not None:
            self._task.add_done_callback(abandoned)

    def leave(self) -> None:
        """Watch no more: a task may live long, and work on many."""
        if self._task is not None and self._abandoned is not None:
            self._task.remove_done_callback(self._abandoned)
        self._task = self._abandoned = None

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
        """End all open work, the latest first, with the last words as its result."""
        for seat in self.open_seats():
            seat.close(self.said)

    def abort(self, error: BaseException) -> None:
        """End all open work by an error, the latest first."""
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
    """Return the result of an agent, as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
