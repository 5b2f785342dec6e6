"""A dialect: everything that differs between coding agents when a hook is called and answers."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from batonpass.adapters.claude_code.transcripts.transcript_reader import text_of
from batonpass.adapters.coders.events import (
    ABOUT_CALLS,
    EVENTS,
    HookEvent,
    agent_in,
    id_in,
    path_in,
    text_in,
)
from batonpass.adapters.tool_kinds import Coder

SAME: Final[Mapping[str, str]] = {name: name for name in EVENTS}


class Failure(StrEnum):
    """How an agent treats a call if its hook fails."""

    OPEN = "open"  # the call is made
    CLOSED = "closed"  # the call is not made


class LinkKind(StrEnum):
    """How the call that started a sub-agent is known, the best first."""

    ID = "id"  # the sub-agent's id names its call, or the call's result names the sub-agent
    PARENT = "parent"  # an event of the sub-agent names its parent
    FILE = "file"  # the sub-agent's session file names its parent
    INFERRED = "inferred"  # only the order of events tells


def deny_like_claude(sentence: str) -> dict[str, Any]:
    """Return the answer that a call must not be made, as Claude Code takes it and most others after it."""
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": sentence}
    return {"hookSpecificOutput": answer}


def regret_like_claude(sentence: str) -> dict[str, Any]:
    """Return the answer that a call did something it should not have done."""
    return {"decision": "block", "reason": sentence}


def say_nothing(sentence: str) -> dict[str, Any]:  # noqa: ARG001 - this agent takes no such answer
    """Return no answer."""
    return {}


def no_agent(event: HookEvent) -> str | None:  # noqa: ARG001 - this agent's results name none
    """Return no sub-agent."""
    return None


def report_like_claude(event: HookEvent) -> str:
    """Return the last words of a sub-agent in the result of the call that started it."""
    return text_of(event.response.get("content")) if isinstance(event.response, dict) else ""


class Dialect(Struct, frozen=True, kw_only=True):
    """How one agent calls hooks, and takes answers."""

    coder: Coder
    title: str  # as its makers write it
    read: Callable[[Mapping[str, Any]], HookEvent | None]  # an event as a value; None if it is not recorded
    session_key: str = "session_id"  # the field with the session
    events: tuple[str, ...] = EVENTS  # by its own names, as they stand in its settings
    deny: Callable[[str], Mapping[str, Any]] | None = deny_like_claude  # None: it cannot refuse one call
    regret: Callable[[str], Mapping[str, Any]] = regret_like_claude
    go_on: Mapping[str, Any] = field(default_factory=dict)  # the answer that lets everything go on
    second: int = 1  # its unit of time: how many of them are a second
    on_crash: Failure = Failure.OPEN
    on_timeout: Failure = Failure.OPEN
    changes_prompts: bool = False  # takes another prompt for a sub-agent
    tells_ends: bool = True  # the end of a sub-agent is an event of its own
    tells_session_ends: bool = True  # the end of a session is an event; else it is over when nothing happens any more
    has_call_ids: bool = True
    usual: str = "general-purpose"  # the type of sub-agent that it starts if a call names none
    links: tuple[LinkKind, ...] = ()  # the ways in which its sub-agents are found
    nested: bool = False  # the events of sub-agents look like those of the main conversation
    started_agent: Callable[[HookEvent], str | None] = no_agent  # the sub-agent that the result of a call names
    report: Callable[[HookEvent], str] = report_like_claude  # the sub-agent's last words in the result of its call
    cannot: tuple[str, ...] = ()  # its limits, for people

    def answer_denied(self, sentence: str) -> dict[str, Any]:
        """Return the answer that denies a call; if the agent takes no such answer, the one that allows it."""
        return dict(self.go_on if self.deny is None else self.deny(sentence))


def read_like_claude(
    raw: Mapping[str, Any],
    coder: Coder,
    *,
    names: Mapping[str, str] = SAME,
    call: str | None = "tool_use_id",
    response: str = "tool_response",
    prompt: str = "prompt",
    prompt_id: str = "prompt_id",
) -> HookEvent | None:
    """Return an event that is worded as Claude Code words it; None if it is not recorded.

    `call` is the field with the id of a call; None if there is none. Raises `InvalidValueError` for a known event with
    an unknown form.
    """
    name = names.get(str(raw.get("hook_event_name")))
    if name is None:
        return None
    about_call = name in ABOUT_CALLS
    given = raw.get("tool_input")
    return HookEvent(
        name=name,
        coder=coder,
        session=id_in(raw, "session_id"),
        agent=agent_in(raw, "agent_id"),
        agent_type=text_in(raw, "agent_type"),
        tool=id_in(raw, "tool_name") if about_call else "",
        input=given if isinstance(given, dict) else {},
        call=id_in(raw, call) if about_call and call is not None else "",
        inferred=about_call and call is None,
        response=raw.get(response),
        error=text_in(raw, "error") or "",
        interrupted=raw.get("is_interrupt") is True,
        prompt=text_in(raw, prompt) or "",
        prompt_id=text_in(raw, prompt_id),
        said=text_in(raw, "last_assistant_message"),
        reason=text_in(raw, "reason"),
        model=text_in(raw, "model"),
        transcript=path_in(raw, "transcript_path"),
        directory=path_in(raw, "cwd"),
        raw=raw,
    )
