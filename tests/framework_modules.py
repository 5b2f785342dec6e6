"""Modules that need a framework, which is installed in an environment of its own: nobody imports them in ours."""

from typing import Final

# Not the packages themselves, which import theirs on demand.
FRAMEWORK_MODULES: Final = (
    "batonpass.adapters.agent_framework.",
    "batonpass.adapters.crewai.",
    "batonpass.adapters.google_adk.",
    "batonpass.adapters.langgraph.",
    "batonpass.adapters.openai_agents.",
    "batonpass.adapters.pydantic_ai.",
    "batonpass.adapters.strands.",
)
