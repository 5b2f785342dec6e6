"""One run of the SDK: the agent at work, and the input of its model. It needs the extra.

Within one run the SDK passes the conversation from agent to agent. Each transfer is a handoff from the agent that had
it, and the next agent has accepted it when its model is asked for the first time. When the run ends, the last agent has
the result, and those before it pass it on.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from agents import Agent, RunHooks
from agents.run import CallModelData, ModelInputData

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.aio.threads import in_thread
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.model.base.ids import as_agent

FRAMEWORK: Final = "openai-agents"
NO_WORDS: Final = "(no words of a person)"


class SdkRun:
    """The agents of one run of the SDK, the one at work last."""

    def __init__(self, *works: AgentWork) -> None:
        self.works = [*works]
        self._kept: dict[int, dict[str, Any]] = {}  # the last checkpoint of each work
        self.asked: Sequence[Any] = ()  # the function calls in the last answer of the model

    @property
    def top(self) -> AgentWork:
        """Return the work of the agent that has the conversation."""
        return self.works[-1]

    def note_answer(self, output: Sequence[Any]) -> None:
        """Note the calls in an answer of the model: the SDK carries out one transfer of a turn, and drops the rest."""
        self.asked = [item for item in output if getattr(item, "type", None) == "function_call"]

    def transfer(self, to: str, tool: str, transfers: Mapping[str, str], words: str) -> None:
        """Offer the conversation to another agent, and record the other transfers of the turn, which the SDK drops.

        `transfers` are the agents of all transfer tools. Raises `HandoffError` and `GrantError` if it is refused.
        """
        calls = [call for call in self.asked if call.name in transfers]
        call = next((one for one in calls if one.name == tool), None)
        sender = self.top
        child = sender.offer(as_agent(to), words, key=None if call is None else call.call_id)
        for other in calls:
            if other is not call:
                sender.offer(as_agent(transfers[other.name]), task_of(other.arguments, words), key=other.call_id).drop()
        self.works.append(child)

    def checkpoint(self, messages: dict[str, Any]) -> None:
        """Keep the input of the model at work, so that another attempt can go on from there."""
        self._kept[id(self.top)] = messages
        self.top.checkpoint(messages)

    def pause(self, facts: dict[str, Any]) -> None:
        """Leave all runs open, because the SDK waits for a decision of the program; the root says so last."""
        first = self.works[0]
        first.checkpoint({**self._kept.get(id(first), {}), **facts})
        for work in self.works:
            work.leave()

    def end(self, output: object) -> None:
        """Close all runs of this one, the last first."""
        result = output if isinstance(output, str) else json.dumps(plain(output), ensure_ascii=False, default=str)
        while self.works:
            self.works.pop().close(result)

    def abort(self, error: BaseException) -> None:
        """End all runs by an error, the last first."""
        while self.works:
            self.works.pop().abort(error)


RUN: Final[ContextVar[SdkRun | None]] = ContextVar("batonpass_openai_agents_run", default=None)


class ModelInputFilter:
    """Sees the input of each model: with it, its agent has begun. The program's own filter comes after it."""

    def __init__(self, given: Callable[[CallModelData[Any]], Any] | None, model: object = None) -> None:
        self._given = given
        self._model = model  # that the program wants instead of each agent's own

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input of the model, with the briefing if its agent has one."""
        told = await _begin(data, self._model)
        if self._given is None:
            return told
        filtered = self._given(replace(data, model_data=told))
        return await filtered if inspect.isawaitable(filtered) else filtered


def _made_of(agent: Any, model: object) -> dict[str, Any]:
    servers = (f"mcp:{server.name}" for server in agent.mcp_servers)
    return makeup(model=model or agent.model, prompt=agent.instructions, tools=(*agent.tools, *servers))


async def _begin(data: CallModelData[Any], model: object) -> ModelInputData:
    """Start the run or accept the handoff of an agent, with a checkpoint, and return the input of its model."""
    told: ModelInputData = data.model_data
    run = RUN.get()
    if run is None:
        return told
    work = run.top

    def prepare() -> str:
        work.open(lambda: _made_of(data.agent, model))
        if work.waits is not None:
            raise work.waits
        run.checkpoint({"framework": FRAMEWORK, "agent": data.agent.name, "items": plain(told.input)})
        return work.briefing()

    if briefing := await in_thread(prepare):
        # In the user's role: the words are the sender's, and never the operator's.
        told = ModelInputData(
            input=[{"role": "user", "content": briefing}, *told.input], instructions=told.instructions
        )
    return told


class AnswerHooks(RunHooks[Any]):
    """Hooks that see the answers of models. All other events go to the hooks that the program gave, unchanged."""

    def __init__(self, given: RunHooks[Any] | None) -> None:
        self._given = given
        for name in dir(given) if given is not None else ():
            if name.startswith("on_") and name != "on_llm_end":
                setattr(self, name, getattr(given, name))

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: Any) -> None:
        """Note the calls that a model asks for."""
        if (run := RUN.get()) is not None:
            run.note_answer(response.output)
        if self._given is not None:
            await self._given.on_llm_end(context, agent, response)


def words_of(given: object) -> str:
    """Return the last words of the user in an input of the SDK."""
    if isinstance(given, str):
        return given
    said = [item for item in _listed(given) if isinstance(item, Mapping) and item.get("role") == "user"]
    content = said[-1].get("content") if said else None
    if isinstance(content, str):
        return content
    texts = [part.get("text", "") for part in _listed(content) if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if text) or NO_WORDS


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def task_of(arguments: str, words: str) -> str:
    """Return the task of a transfer: the model's words for it, else the words that the conversation is about."""
    try:
        said = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return json.dumps(said, ensure_ascii=False) if said else words


def plain(value: Any) -> Any:
    """Return items and outputs of the SDK as JSON."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value
