"""Agents that follow scripts, on a ledger in memory: what the unit tests of native agents share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    EventLog,
    HandoffExecutor,
    HandoffPolicy,
    RunnerConfig,
    ScriptedClient,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore

PATIENCE = 30.0


def run_async(main: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


def noting(into: list[Any], answer: str, note: Callable[[Any], Any] = lambda turn: turn.prompt) -> Callable[[Any], str]:
    """Return a script that notes something of each turn, by default its prompt, and always gives the same answer."""

    def script(turn: Any) -> str:  # noqa: ANN401 - a turn
        into.append(note(turn))
        return answer

    return script


class House:
    """Agents by name, each with a script, on one relay."""

    def __init__(self, policy: HandoffPolicy | None = None, **config: Any) -> None:  # noqa: ANN401 - of a runner
        self.relay = Relay(MemoryStore())
        self.registry = AgentRegistry()
        self.executor = HandoffExecutor(self.registry, policy)
        self.config = RunnerConfig(**config)

    def agent(self, name: str, script: Callable[[Any], Any], *tools: Any) -> AgentDefinition:  # noqa: ANN401 - functions, definitions
        """Register an agent that follows a script."""
        known = ToolRegistry()
        for tool in tools:
            if isinstance(tool, ToolDefinition):
                known.register_tool_definition(tool)
            else:
                known.register(tool)
        runner = AgentRunner(ScriptedClient(script), ToolExecutor(known), self.config, relay=self.relay)
        definition = AgentDefinition(name=name, model="scripted", system_prompt=f"You are {name}.")
        self.registry.register(name, runner, definition)
        return definition

    def to(self, agent: str) -> ToolDefinition:
        """Return the tool that hands to an agent."""
        return create_handoff_tool(agent, f"Hand to {agent}", self.executor)

    def ask(self, name: str, words: str, **options: Any) -> str:  # noqa: ANN401 - as AgentRunner.run
        """Return what an agent answers."""
        agent = self.registry.get(name)
        return str(run_async(agent.runner.run(agent.definition, words, **options)).output)

    def told(self, prefix: str = "") -> list[str]:
        """Return all events whose type begins so, in words."""
        events = run_async(EventLog(self.relay).get_events(event_type_prefix=prefix))
        return [f"{event.event_type}: {event.summary}" for event in events]
