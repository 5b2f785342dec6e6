"""Native agents, as users write them: checked for their types, not run."""

from typing import assert_type

from batonpass.agents import (
    AgentCard,
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    AnthropicClient,
    Crew,
    CrewResult,
    Event,
    EventLog,
    HandoffExecutor,
    HandoffPolicy,
    RunnerConfig,
    RunResult,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)


def look_up(customer: str) -> str:
    """Look a customer up."""
    return customer


async def desk() -> None:
    """Build a desk, ask it, and read what happened."""
    tools = ToolRegistry([look_up])
    assert_type(tools.register(look_up, name="again", external=True), ToolDefinition)
    runner = AgentRunner(AnthropicClient(api_key="k"), ToolExecutor(tools), RunnerConfig(max_iterations=8))
    billing = AgentDefinition(name="billing-agent", model="claude-sonnet-4-6", tools=["look_up"])
    registry = AgentRegistry()
    assert_type(registry.register("billing-agent", runner, billing, "Invoices.", ["billing"]), AgentCard)
    executor = HandoffExecutor(registry=registry, policy=HandoffPolicy(max_depth=3, allowed_agents=["billing-agent"]))
    assert_type(create_handoff_tool("billing-agent", "For invoices.", executor), ToolDefinition)
    assert_type(await runner.run(billing, "hello", session_id="s", by="user:ana"), RunResult)
    assert_type(await EventLog().get_events(session_id="s", event_type_prefix="handoff"), list[Event])
    assert_type(await Crew.pipeline(["billing-agent"], registry=registry).run("go"), CrewResult)
