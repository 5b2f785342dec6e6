"""The names of OpenTelemetry's conventions for generative AI, pinned: all of them are still in development.

Names of our own, for things without a convention, begin with `batonpass.`.
"""

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
SCOPE: Final = "batonpass"
SERVICE: Final = "service.name"

OPERATION: Final = "gen_ai.operation.name"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
FUNCTION: Final = "function"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
TRANSFER_TO: Final = "transfer_to_"
TRANSFER_MODE: Final = "gen_ai.transfer.mode"
RETURN_TO_CALLER: Final = "return_to_caller"  # every handoff ends with a report to whoever made it
TRANSFER_TARGET: Final = "gen_ai.transfer.target.name"
TRANSFER_TARGET_TYPE: Final = "gen_ai.transfer.target.type"
CALLER_NAME: Final = "gen_ai.caller.name"
CALLER_TYPE: Final = "gen_ai.caller.type"
AGENT: Final = "agent"
ERROR_TYPE: Final = "error.type"

# Viewers of traces draw the graph of agents from these.
SESSION: Final = "session.id"
NODE: Final = "graph.node.id"
NODE_PARENT: Final = "graph.node.parent_id"

DURATION: Final = "gen_ai.client.operation.duration"  # a histogram, in seconds
DURATION_BOUNDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

OURS: Final = "batonpass."
IN_DOUBT: Final = "batonpass.in_doubt"  # a call without an outcome when its run was over
