"""What the real frameworks wrote of one small job.

A person asks for a change. `lead` asks `checker`, an agent that is used as a tool, and hands to `editor`, which writes
a file. One tool fails. Long settings and counts of tokens were taken out; nothing else was changed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from batonpass.adapters.session_readers import NAMED_READERS
from batonpass.adapters.trace_files.trace_reader import NamedSource

RECORDED: Final = Path(__file__).parent / "recorded"
PROMPT: Final = "Make the invoice round half-even"
CHECK: Final = "Check src/invoice.py"


@dataclass(frozen=True, kw_only=True)
class RecordedTrace:
    """One file, what wrote it, and what it tells."""

    program: str
    file: str
    prompts: tuple[str, ...] = (PROMPT,)
    editor: str | None = PROMPT  # its task
    editor_says: str | None = "edited"
    failed: tuple[str, ...] = ("broken",)
    calls: tuple[tuple[str, str], ...] = (("editor", "write_file"), ("editor", "broken"))

    def __str__(self) -> str:
        return self.file

    def reader(self) -> NamedSource:
        """Return a reader of the file."""
        return NAMED_READERS[self.program]([str(RECORDED / self.file)])


TRACES: Final = (
    RecordedTrace(
        program="openai-agents", file="openai_agents.jsonl", prompts=(), editor=None, editor_says=None
    ),  # the SDK tells no words of models that speak the Responses API
    RecordedTrace(program="openai-agents", file="openai_agents_chat.jsonl"),
    RecordedTrace(
        program="opentelemetry",
        file="opentelemetry.jsonl",
        editor="Write src/invoice.py",
        calls=(("editor", "write_file"), ("lead", "broken")),
    ),  # PydanticAI 2.66, by the Collector's format
)
