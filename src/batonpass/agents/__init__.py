"""Native agents: models that work on a relay and hand work to each other.

Running an agent needs the extra `batonpass[agents]`; importing this package needs only the core.
"""

from batonpass.agents.agent_memory import AgentMemory
from batonpass.agents.agent_relay import state_store
from batonpass.agents.agent_tools import ToolDefinition, ToolExecutor, ToolRegistry
from batonpass.agents.clients import AnthropicClient, ModelClient, OpenAIClient, ScriptedClient
from batonpass.agents.crew import Crew, CrewResult
from batonpass.agents.definition import AgentDefinition, RunnerConfig, RunResult
from batonpass.agents.event_log import Event, EventLog
from batonpass.agents.handoff_tool import HandoffExecutor, create_handoff_tool
from batonpass.agents.registry import AgentCard, AgentRegistry
from batonpass.agents.runner import AgentRunner
from batonpass.errors import HandoffDepthExceededError
from batonpass.model.base.label import SourceType
from batonpass.model.policy.handoff_policy import HandoffPolicy

__all__ = [
    "AgentCard",
    "AgentDefinition",
    "AgentMemory",
    "AgentRegistry",
    "AgentRunner",
    "AnthropicClient",
    "Crew",
    "CrewResult",
    "Event",
    "EventLog",
    "HandoffDepthExceededError",
    "HandoffExecutor",
    "HandoffPolicy",
    "ModelClient",
    "OpenAIClient",
    "RunResult",
    "RunnerConfig",
    "ScriptedClient",
    "SourceType",
    "ToolDefinition",
    "ToolExecutor",
    "ToolRegistry",
    "create_handoff_tool",
    "state_store",
]
