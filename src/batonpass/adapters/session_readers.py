"""The agents whose sessions can be read, in the order in which they are looked for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from batonpass.adapters.claude_code.transcripts.transcript_reader import ClaudeCodeSessions
from batonpass.adapters.session_files.codex import CodexSessions
from batonpass.adapters.session_files.session_reader import SessionReader

READERS: Final[Mapping[str, type[SessionReader]]] = MappingProxyType(
    {reader.program: reader for reader in (ClaudeCodeSessions, CodexSessions)}
)


def find_kept(project: Path) -> Iterator[SessionReader]:
    """Yield the agents that have kept a session of a project."""
    return (reader for reader in (kind() for kind in READERS.values()) if next(reader.find(project), None) is not None)
