"""The stages of Strands that we use. From 1.62 on they have public names; before, the same ones had private names.

It needs the extra.
"""

from collections.abc import Callable
from typing import Any

from strands import Agent

try:
    from strands.middleware.stages import ExecuteToolContext, ExecuteToolStage, InvokeModelContext, InvokeModelStage
    from strands.types.events import ModelStopReason, ToolResultEvent
except ImportError:
    from strands._middleware.stages import ExecuteToolContext, ExecuteToolStage, InvokeModelContext, InvokeModelStage
    from strands.types._events import ModelStopReason, ToolResultEvent

__all__ = [
    "ExecuteToolContext",
    "ExecuteToolStage",
    "InvokeModelContext",
    "ModelStopReason",
    "ToolResultEvent",
    "stand_in",
]


def stand_in(agent: Agent, *, requests: Callable[..., Any], calls: Callable[..., Any]) -> None:
    """Let the requests and calls of an agent pass through us, inside of all that was added to it before."""
    add = getattr(agent, "add_middleware", None) or agent._middleware_registry.add_middleware  # noqa: SLF001 - below 1.62
    add(InvokeModelStage, requests)
    add(ExecuteToolStage, calls)
