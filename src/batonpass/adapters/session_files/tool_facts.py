"""What a call of an agent's tool means: what it changes, whether it only reads, whether it starts a sub-agent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from batonpass.adapters.session_files.session_values import ToolUse


class ToolTable(Struct, frozen=True, kw_only=True):
    """The tools of one agent by what they do. A tool that is not in it may do anything."""

    editors: Mapping[str, str] = {}  # the argument that names the file, by tool
    readers: frozenset[str] = frozenset()
    delegates: Mapping[str, str] = {}  # the argument with the task, by tool


def use_of(
    tables: ToolTable, tool: str, arguments: Mapping[str, Any], *, call: str, agent: str | None, at: datetime, uuid: str
) -> ToolUse:
    """Return a call as a record, with what its tool and its arguments tell."""
    target = arguments.get(tables.editors[tool]) if tool in tables.editors else None
    task = arguments.get(tables.delegates[tool]) if tool in tables.delegates else None
    return ToolUse(
        agent=agent,
        tool=tool,
        input=arguments,
        tool_use_id=call,
        at=at,
        uuid=uuid,
        target=target if isinstance(target, str) else None,
        reads=tool in tables.readers,
        delegates=tool in tables.delegates,
        task=task if isinstance(task, str) else None,
    )
