"""One agent at a task: the words for its model, and the messages from which it can go on. It needs the extra."""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool

from batonpass.adapters.frameworks.agent_work import AgentWork, Makeup
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.programs.agent_makeup import makeup

FRAMEWORK: Final = "crewai"
# Parts of a message besides words: objects of a provider, and files, which no checkpoint can keep.
_OBJECTS: Final = frozenset({"raw_tool_call_parts", "files"})


@dataclass
class TaskWork:
    """The work of an agent on a task. `kept` are the messages of an earlier attempt, from which it goes on."""

    work: AgentWork
    agent: Any
    task: Any = None  # None if the agent was kicked off without a crew
    kept: list[Any] | None = None

    def prepare(self, context: Any) -> None:
        """Start the run or accept the handoff, with a checkpoint; add the briefing to the model's request.

        Raises the errors of `AgentWork.open`, and `CallSuspendedError` if one of its calls waits for a person: then it
        is over.
        """
        self.open()
        if self.work.waits is not None:
            raise self.work.waits
        messages, briefing = context.messages, self.work.briefing()
        if context.executor is not None:  # else it is a side question, such as one about what to remember
            if self.kept is not None:
                messages[:] = self.kept
                self.kept = None
            self.work.checkpoint(self._checkpoint(context.executor, _without(messages, briefing)))
        if briefing and not any(message.get("content") == briefing for message in messages):
            # In the user's role: the words are the sender's, and never the operator's.
            messages.insert(_first_after_system(messages), {"role": "user", "content": briefing})

    def open(self) -> None:
        """Begin the run. The child of a resumed run goes on from the messages of its earlier attempt."""
        begins, parent = self.work.run is None, self.work.parent
        self.work.open(lambda: _made_of(self.agent))
        run = self.work.run
        if begins and run is not None and parent is not None and parent.resumed:
            self.kept = kept_messages(run)

    def _checkpoint(self, executor: Any, messages: list[Any]) -> dict[str, Any]:
        own = [id(tool) for tool in getattr(self.agent, "tools", None) or ()]
        given = [tool for tool in executor.original_tools if isinstance(tool, BaseAgentTool) and id(tool) not in own]
        plain = [{name: value for name, value in one.items() if name not in _OBJECTS} for one in messages]
        return {
            "framework": FRAMEWORK,
            "messages": json.loads(json.dumps(plain, default=str)),
            "coworkers": bool(given),
            "expected_output": getattr(self.task, "expected_output", None),
        }


WORK: Final[ContextVar[TaskWork | None]] = ContextVar("batonpass_crewai_work", default=None)


def _made_of(agent: Any) -> Makeup:
    # A crew fills its inputs into these texts, so the originals are read: else each input would be another agent.
    names = ("role", "goal", "backstory")
    prompt = [getattr(agent, f"_original_{name}", None) or getattr(agent, name, None) for name in names]
    return makeup(model=getattr(agent, "llm", None), prompt=prompt, tools=getattr(agent, "tools", None) or ())


def kept_messages(run: LiveRun) -> list[Any] | None:
    """Return the messages from which a run goes on, if an earlier attempt kept any."""
    found = run.messages()
    return found.get("messages") if isinstance(found, dict) and found.get("framework") == FRAMEWORK else None


def _without(messages: list[Any], briefing: str) -> list[Any]:
    return [one for one in messages if not briefing or one.get("content") != briefing]


def _first_after_system(messages: list[Mapping[str, Any]]) -> int:
    return next((place for place, one in enumerate(messages) if one.get("role") != "system"), len(messages))
