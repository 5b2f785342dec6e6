"""A call as a record, with the facts from the table of tools: the files it changes, the command, the handoff."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from batonpass.adapters.session_files.session_values import ToolUse
from batonpass.adapters.tool_kinds import Coder, ToolKind, find_form


def use_of(
    coder: Coder,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    call: str,
    agent: str | None,
    at: datetime,
    uuid: str,
    model: str | None = None,
) -> ToolUse:
    """Return a call as a record. A tool that is not in the table may do anything."""
    form = find_form(coder, tool)
    use = ToolUse(agent=agent, tool=tool, input=arguments, tool_use_id=call, at=at, uuid=uuid, model=model)
    if form is None:
        return use
    is_editor, delegates = form.kind is ToolKind.WRITER, form.kind is ToolKind.DELEGATE
    return ToolUse(
        agent=agent,
        tool=tool,
        input=arguments,
        tool_use_id=call,
        at=at,
        uuid=uuid,
        model=model,
        target=_argument(arguments, form.file) if is_editor else None,
        command=_argument(arguments, form.command),
        reads=form.is_reading,
        delegates=delegates,
        task=_argument(arguments, form.task) if delegates else None,
    )


def _argument(arguments: Mapping[str, Any], name: str | None) -> str | None:
    given = None if name is None else arguments.get(name)
    return given if isinstance(given, str) else None
