"""What a transcript says, as values. Every text in them was written by a person, a model or a tool: data, no more."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct


class LinkedBy(StrEnum):
    """How we know which call started a sub-agent, the surest first."""

    META = "meta"  # the file beside its transcript says so
    RESULT = "result"  # the result of the call names it
    INFERRED = "inferred"  # its task is, word for word, the prompt of a call that nobody else answers


class PatchHunk(Struct, frozen=True, kw_only=True):
    """Lines that were replaced; each begins with a blank, `-` or `+`.

    A side begins at a line, counted from 1; one without lines, after a line. A place that nobody noted down is None.
    """

    old_start: int | None
    new_start: int | None
    lines: tuple[str, ...]


class FilePatch(Struct, frozen=True, kw_only=True):
    """What a call did to one file, as far as its result says."""

    path: str
    created: bool
    before: str | None  # None: it was not there, or is not known
    after: str | None  # None: not known
    hunks: tuple[PatchHunk, ...]


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A session, once all of its lines were read."""

    id: str
    version: str | None  # of the program that wrote the last line
    cwd: str | None  # where it began
    branch: str | None
    first_at: datetime | None
    last_at: datetime | None


class Prompt(Struct, frozen=True, kw_only=True):
    """What the human said."""

    session: str
    at: datetime
    text: str
    uuid: str
    prompt_id: str | None = None  # under which hooks were told of it


class Task(Struct, frozen=True, kw_only=True):
    """What a sub-agent was told; the first one is its task."""

    session: str
    agent: str
    at: datetime
    text: str
    uuid: str


class SaidInWords(Struct, frozen=True, kw_only=True):
    """What the model said in words."""

    session: str
    agent: str | None
    at: datetime
    text: str
    uuid: str


class ToolUse(Struct, frozen=True, kw_only=True):
    """A call that the model asked for; `agent` is None in the main conversation."""

    session: str
    agent: str | None
    tool: str
    input: Mapping[str, Any]
    tool_use_id: str
    at: datetime
    uuid: str
    parent: str | None
    cwd: str | None = None  # where it was made


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    session: str
    agent: str | None
    tool_use_id: str
    ok: bool
    at: datetime
    uuid: str
    text: str
    patch: FilePatch | None = None
    error: str | None = None  # its words, if it failed or was refused
    denied: str | None = None  # who or what refused it: then it was not made
    unknown: bool = False  # the program died during the call: these are its words about that, and no outcome


class SubagentLink(Struct, frozen=True, kw_only=True):
    """Which call started a sub-agent."""

    session: str
    agent: str
    tool_use_id: str
    how: LinkedBy
    agent_type: str | None = None
    prompt: str | None = None
    status: str | None = None  # as the result says: completed, or launched and left running


class SubagentEnded(Struct, frozen=True, kw_only=True):
    """A sub-agent that was left running reported that it stopped."""

    session: str
    agent: str
    tool_use_id: str | None
    status: str
    at: datetime


class SkippedLine(Struct, frozen=True, kw_only=True):
    """A line that could not be read, and was skipped."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Record: TypeAlias = Prompt | Task | SaidInWords | ToolUse | ToolResult | SubagentLink | SubagentEnded | SessionInfo
