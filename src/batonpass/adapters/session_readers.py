"""The agents whose sessions can be read, in the order in which they are looked for, and the files that people name."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.session_files.readers.aider import AiderSessions
from batonpass.adapters.session_files.readers.cline import ClineSessions
from batonpass.adapters.session_files.readers.codex import CodexSessions
from batonpass.adapters.session_files.readers.copilot import CopilotSessions
from batonpass.adapters.session_files.readers.cursor import CursorSessions
from batonpass.adapters.session_files.readers.droid import DroidSessions
from batonpass.adapters.session_files.readers.gemini import GeminiSessions
from batonpass.adapters.session_files.readers.goose import GooseSessions
from batonpass.adapters.session_files.readers.opencode import OpenCodeSessions
from batonpass.adapters.session_files.readers.qwen import QwenSessions
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.trace_files.event_lines import EventLines
from batonpass.adapters.trace_files.langgraph_checkpoints import LangGraphCheckpoints
from batonpass.adapters.trace_files.openai_traces import OpenAITraces
from batonpass.adapters.trace_files.otel_spans import OpenTelemetrySpans
from batonpass.adapters.trace_files.trace_reader import NamedSource

_KINDS: Final[tuple[type[SessionReader], ...]] = (
    *(ClaudeCodeSessions, CodexSessions, CopilotSessions, QwenSessions, GeminiSessions, OpenCodeSessions),
    *(CursorSessions, DroidSessions, ClineSessions, GooseSessions, AiderSessions),
)
_NAMED: Final[tuple[type[NamedSource], ...]] = (OpenAITraces, LangGraphCheckpoints, OpenTelemetrySpans, EventLines)
READERS: Final[Mapping[str, type[SessionReader]]] = MappingProxyType({kind.program: kind for kind in _KINDS})
# These are read only if somebody names them.
NAMED_READERS: Final[Mapping[str, type[NamedSource]]] = MappingProxyType({kind.program: kind for kind in _NAMED})


def find_kept(project: Path) -> Iterator[SessionReader]:
    """Yield the agents that have kept a session of a project."""
    return (reader for reader in (kind() for kind in READERS.values()) if next(reader.find(project), None) is not None)
