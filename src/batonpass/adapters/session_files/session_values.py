"""The records of a session as values, whichever agent kept it.

Every text in them was written by a person, a model or a tool: it is data.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct


class LinkedBy(StrEnum):
    """How it is known which call started a sub-agent, surest first."""

    META = "meta"  # its own file says so, or one next to it
    RESULT = "result"  # the result of the call names it
    INFERRED = "inferred"  # its task equals the prompt of a call that started nobody else


class PatchHunk(Struct, frozen=True, kw_only=True):
    """Replaced lines, each prefixed by a blank, `-` or `+`.

    A start is a line number from 1; for a side without lines, the line before. None if the position is unknown.
    """

    old_start: int | None
    new_start: int | None
    lines: tuple[str, ...]


class FilePatch(Struct, frozen=True, kw_only=True):
    """A change of one file by a call. In a `Conversation` the path is relative to the project if it is inside."""

    path: str
    created: bool = False
    perhaps_created: bool = False  # the program writes whole files, and does not say whether one was there
    before: str | None = None  # None: it did not exist, or is unknown
    after: str | None = None  # None: unknown
    hunks: tuple[PatchHunk, ...] = ()
    written: bool = False  # completely, by a call whose arguments have the whole text
    renamed_from: str | None = None


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A session, after all its lines were read."""

    id: str
    version: str | None = None  # of the program that wrote the last line
    model: str | None = None  # the last one that answered, as the program names it
    agent: str | None = None  # who had the main conversation, if that is not the program itself


class Prompt(Struct, frozen=True, kw_only=True):
    """Words of the human."""

    at: datetime
    text: str
    uuid: str
    prompt_id: str | None = None  # the id that hooks get for the same words


class Task(Struct, frozen=True, kw_only=True):
    """Words to a sub-agent; the first are its task."""

    agent: str
    at: datetime
    text: str
    uuid: str


def words_to(agent: str | None, at: datetime, text: str, uuid: str) -> Prompt | Task:
    """Return words to an agent: only in the main conversation, which has no name, are they the human's."""
    if agent is None:
        return Prompt(at=at, text=text, uuid=uuid)
    return Task(agent=agent, at=at, text=text, uuid=uuid)


class SaidInWords(Struct, frozen=True, kw_only=True):
    """Words of the model; `agent` is None in the main conversation."""

    agent: str | None
    at: datetime
    text: str
    uuid: str


class ToolUse(Struct, frozen=True, kw_only=True):
    """A call that the model made; `agent` is None in the main conversation."""

    agent: str | None
    tool: str
    input: Mapping[str, Any]
    tool_use_id: str
    at: datetime
    uuid: str
    cwd: str | None = None
    command: str | None = None  # the line that it runs in a shell
    target: str | None = None  # the only file that it is to change, as the agent spells it
    reads: bool = False  # changes nothing that outlives the session
    delegates: bool = False  # starts a sub-agent
    task: str | None = None  # the exact prompt for the sub-agent
    model: str | None = None  # the one that made the call, as the program names it


class ToolResult(Struct, frozen=True, kw_only=True):
    """The outcome of a call."""

    agent: str | None
    tool_use_id: str
    ok: bool
    at: datetime
    uuid: str
    text: str
    patches: tuple[FilePatch, ...] = ()  # with paths as the agent spells them, absolute if it is known from where
    denied: str | None = None  # the person or mechanism that denied the call, if it was not made
    unknown: bool = False  # the program died during the call: the text reports that and is no outcome


class SubagentLink(Struct, frozen=True, kw_only=True):
    """The call that started a sub-agent."""

    agent: str
    tool_use_id: str
    how: LinkedBy
    agent_type: str | None = None
    status: str | None = None  # from the result: completed, or launched in the background


class SubagentEnded(Struct, frozen=True, kw_only=True):
    """A notice that a sub-agent stopped; `agent` is None for the main conversation."""

    agent: str | None
    tool_use_id: str | None
    status: str
    at: datetime | None = None


class SkippedLine(Struct, frozen=True, kw_only=True):
    """A line that could not be read, or several of them in one entry."""

    path: Path
    line: int  # 0 if it is no line of a file
    what: str
    times: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Record: TypeAlias = Prompt | Task | SaidInWords | ToolUse | ToolResult | SubagentLink | SubagentEnded | SessionInfo
