"""Factory droid: Claude Code's names and JSON, without ids of calls. A sub-agent is a session that names its caller."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, read_like_claude
from batonpass.adapters.coders.events import HookEvent, agent_in
from batonpass.adapters.tool_kinds import Coder

_STARTED: Final = re.compile(r"^session_id: ([A-Za-z0-9_-]{1,128})$", re.MULTILINE)
_TASK: Final = re.compile(r"---BEGIN TASK FROM PARENT AGENT---\n(.*)\n---END TASK FROM PARENT AGENT---", re.DOTALL)


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of droid; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    event = read_like_claude(raw, Coder.DROID, call=None, prompt_id="message_id")
    if event is None or event.name == "SubagentStop":
        return None  # it does not say which sub-agent; the end of that session does
    if event.name == "SessionStart" and (caller := agent_in(raw, "calling_session_id")) is not None:
        return replace(event, name="SubagentStart", agent=event.session, session=caller, parent=caller)
    framed = _TASK.search(event.prompt)
    return event if framed is None else replace(event, prompt=framed[1])


def started_agent(event: HookEvent) -> str | None:
    """Return the session that `Task` started."""
    found = _STARTED.search(event.response) if isinstance(event.response, str) else None
    return None if found is None else found[1]


DROID = Dialect(
    coder=Coder.DROID,
    title="Factory droid",
    read=read_event,
    has_call_ids=False,
    links=(LinkKind.ID, LinkKind.PARENT, LinkKind.FILE, LinkKind.INFERRED),
    started_agent=started_agent,
    cannot=(
        "droid gives calls no ids: ours are inferred from tool, arguments and order, and marked so",
        "`droid exec` does not tell the first prompt",
    ),
)
