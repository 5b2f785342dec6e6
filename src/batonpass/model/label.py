"""Labels: where words came from, and so how far they are to be trusted. Set by the relay, never by the sender."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SourceType(StrEnum):
    """Where words came from. The text is kept with them, so it is forever."""

    SYSTEM = "system"
    USER_INPUT = "user_input"
    LLM_GENERATED = "llm_generated"
    TOOL_OUTPUT = "tool_output"
    EXTERNAL = "external"

    @property
    def trust(self) -> int:
        """Return how far it is trusted, in thousandths."""
        return _TRUST[self]

    @property
    def trust_level(self) -> float:
        """Return how far it is trusted, between 0 and 1."""
        return self.trust / 1000


_TRUST: Final[Mapping[SourceType, int]] = MappingProxyType(
    {
        SourceType.SYSTEM: 1000,
        SourceType.USER_INPUT: 900,
        SourceType.LLM_GENERATED: 700,
        SourceType.TOOL_OUTPUT: 500,
        SourceType.EXTERNAL: 300,
    },
)


def join(*labels: SourceType) -> SourceType:
    """Return the label of what was made from several: that of the least trusted. A summary launders nothing."""
    return min(labels, key=lambda label: label.trust)
