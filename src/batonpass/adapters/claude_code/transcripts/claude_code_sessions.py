"""Claude Code's transcripts, as the importer asks for them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from batonpass.adapters.claude_code.transcripts.delegation_message import find_messages
from batonpass.adapters.claude_code.transcripts.transcript_lines import began_at, find_uuids
from batonpass.adapters.claude_code.transcripts.transcript_places import PROGRAM, config_directory, find_transcripts
from batonpass.adapters.claude_code.transcripts.transcript_reader import read_session
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import Record, SkippedLine
from batonpass.model.bodies.reasoning import ReasoningPlace


class ClaudeCodeSessions(SessionReader):
    """The sessions of Claude Code, in its own directory or in another."""

    program: ClassVar[str] = PROGRAM
    title: ClassVar[str] = "Claude Code"

    def __init__(self, config: Path | None = None) -> None:
        self._config = config or config_directory()

    @property
    def place(self) -> Path:
        """Return where the transcripts are."""
        return self._config / "projects"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project."""
        return find_transcripts(project, config=self._config)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        return read_session(files, project)

    def began_at(self, files: SessionFiles) -> datetime:
        """Return the first time in the main conversation."""
        return began_at(files.main)

    def ids(self, files: SessionFiles) -> Iterator[str]:
        """Yield the ids of the lines of the main conversation, the only ones that a fork copies."""
        return find_uuids(files.main)

    def messages(self, files: SessionFiles) -> Mapping[str, ReasoningPlace]:
        """Return where the messages that started sub-agents are."""
        return find_messages(files.files)
