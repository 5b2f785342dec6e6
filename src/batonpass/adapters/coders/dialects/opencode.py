"""OpenCode: it has plugins instead of hooks. Ours keeps the families of sessions, and words events for us."""

from collections.abc import Mapping
from typing import Any, Final

from batonpass.adapters.coders.dialects.dialect import Dialect, Failure, LinkKind, say_nothing
from batonpass.adapters.coders.events import ABOUT_CALLS, EVENTS, HookEvent, agent_in, id_in, path_in, text_in
from batonpass.adapters.tool_kinds import Coder

_TOLD: Final = frozenset(EVENTS)


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of our plugin; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    name = raw.get("hook_event_name")
    if name not in _TOLD:
        return None
    about_call = name in ABOUT_CALLS
    given = raw.get("tool_input")
    return HookEvent(
        name=str(name),
        coder=Coder.OPENCODE,
        session=id_in(raw, "session_id"),
        agent=agent_in(raw, "agent_id"),
        agent_type=text_in(raw, "agent_type"),
        parent=agent_in(raw, "parent_id"),
        tool=id_in(raw, "tool_name") if about_call else "",
        input=given if isinstance(given, dict) else {},
        call=id_in(raw, "tool_use_id") if about_call else "",
        response=raw.get("tool_response"),
        error=text_in(raw, "error") or "",
        prompt=text_in(raw, "prompt") or "",
        prompt_id=text_in(raw, "prompt_id"),
        said=text_in(raw, "last_assistant_message"),
        reason=text_in(raw, "reason"),
        model=text_in(raw, "model"),
        directory=path_in(raw, "cwd"),
        raw=raw,
    )


def started_agent(event: HookEvent) -> str | None:
    """Return the session that `task` started, as its result names it."""
    told = event.response if isinstance(event.response, dict) else {}
    metadata = told.get("metadata")
    agent = metadata.get("sessionId") if isinstance(metadata, dict) else None
    return agent if isinstance(agent, str) else None


OPENCODE = Dialect(
    coder=Coder.OPENCODE,
    title="OpenCode",
    read=read_event,
    regret=say_nothing,
    second=1000,
    on_crash=Failure.CLOSED,
    on_timeout=Failure.CLOSED,
    links=(LinkKind.PARENT, LinkKind.ID, LinkKind.INFERRED),
    started_agent=started_agent,
    tells_session_ends=False,
    cannot=(
        "a call that fails inside OpenCode is told to no plugin: its outcome stays open until the session ends",
        "OpenCode does not tell the end of a session: a later session closes its run, ten minutes after its last event",
    ),
)
