"""The port between the importer and an agent's own files. Each agent has a reader that knows them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from batonpass.adapters.session_files.json_lines import EPOCH
from batonpass.adapters.session_files.session_place import SessionFiles, mentioning
from batonpass.adapters.session_files.session_values import Record, SkippedLine
from batonpass.model.bodies.reasoning import ReasoningPlace


class SessionReader(ABC):
    """Finds and reads the sessions that one agent keeps. It never changes or locks their files."""

    program: ClassVar[str]  # as receipts and commands name it
    title: ClassVar[str]  # as people do
    may_fork: ClassVar[bool] = True  # a session may begin with copies of another's records, under their ids

    @property
    @abstractmethod
    def place(self) -> Path:
        """Return where the agent keeps its sessions, whether or not there are any."""

    @abstractmethod
    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a directory or below it."""

    @abstractmethod
    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session, and last the session itself. Unreadable parts are reported, never guessed."""

    def mentioning(self, names: Iterable[str]) -> Callable[[SessionFiles], bool]:
        """Return a test whether a session may mention one of these files. It never misses one that does."""
        return mentioning(names)

    def began_at(self, files: SessionFiles) -> datetime:
        """Return when a session began; the epoch if that is unknown."""
        return next((at for one in self._records(files) if (at := getattr(one, "at", None)) is not None), EPOCH)

    def ended_at(self, files: SessionFiles) -> datetime:
        """Return when a session was last written; the epoch if that is unknown."""
        written = max((path.stat().st_mtime for path in files.files if path.exists()), default=0.0)
        return datetime.fromtimestamp(written, UTC)

    def ids(self, files: SessionFiles) -> Iterator[str]:
        """Yield the ids of a session's records: a fork begins with copies of them."""
        return (uuid for one in self._records(files) if (uuid := getattr(one, "uuid", None)) is not None)

    def problems(self) -> tuple[SkippedLine, ...]:
        """Return the unreadable parts that belong to no session, after all sessions were found."""
        return ()

    def messages(self, files: SessionFiles) -> Mapping[str, ReasoningPlace]:  # noqa: ARG002 - for those that can tell
        """Return where the messages that started sub-agents are, by the ids of their calls."""
        return {}

    def _records(self, files: SessionFiles) -> Iterator[Record]:
        return (one for one in self.read(files, Path("/")) if not isinstance(one, SkippedLine))
