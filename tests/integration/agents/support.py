"""Agents on a server of this machine: what the tests of native agents share."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any, Final

from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    AnthropicClient,
    EventLog,
    HandoffExecutor,
    HandoffPolicy,
    RunnerConfig,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.agents.agent_tools import ToolDefinition
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.integration.agents.messages_api import MessagesApi

KEY: Final = "sk-of-the-provider"
PATIENCE: Final = 240.0


def run_async(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401 - whatever main returns
    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


class House:
    """Several agents that may hand work to each other, on one relay and one provider."""

    def __init__(
        self,
        api: MessagesApi,
        *,
        policy: HandoffPolicy | None = None,
        stream: bool = False,
        retries: int = 2,
        timeout: timedelta = timedelta(seconds=30),
        enable_memory: bool = False,
        recall: int = 0,
    ) -> None:
        self.relay = Relay(MemoryStore())
        self.registry = AgentRegistry()
        self.executor = HandoffExecutor(self.registry, policy)
        self.client = AnthropicClient(api_key=KEY, base_url=api.url)
        self.events = EventLog(self.relay)
        self._config = RunnerConfig(
            stream=stream,
            retries=retries,
            timeout=timeout,
            max_tokens=1000,
            enable_memory=enable_memory,
            recall=recall,
        )

    def runner(self, *tools: Callable[..., Any] | ToolDefinition) -> AgentRunner:
        """Return what runs an agent with these tools."""
        known = ToolRegistry()
        for tool in tools:
            if isinstance(tool, ToolDefinition):
                known.register_tool_definition(tool)
            else:
                known.register(tool)
        return AgentRunner(self.client, ToolExecutor(known), self._config, relay=self.relay)

    def to(self, agent: str, **options: Any) -> ToolDefinition:  # noqa: ANN401 - as create_handoff_tool
        """Return the tool that hands to an agent."""
        return create_handoff_tool(agent, f"Hand to {agent}", self.executor, **options)

    def agent(
        self,
        name: str,
        *,
        tools: Iterable[Callable[..., Any] | ToolDefinition] = (),
        secret: str = "",
        **rights: Any,  # noqa: ANN401 - as a definition has them
    ) -> AgentDefinition:
        """Register an agent whose operator calls it by its name."""
        words = f"You are {name}. {secret}"
        definition = AgentDefinition(name=name, model="claude-sonnet-4-6", system_prompt=words, **rights)
        self.registry.register(name, self.runner(*tools), definition, skills=[name])
        return definition

    async def ask(self, name: str, words: str, **options: Any) -> str:  # noqa: ANN401 - as AgentRunner.run
        """Return what an agent answers."""
        agent = self.registry.get(name)
        return (await agent.runner.run(agent.definition, words, **options)).output

    async def kinds(self, prefix: str = "") -> list[str]:
        """Return the types of all events that begin so."""
        return [event.event_type for event in await self.events.get_events(event_type_prefix=prefix)]
