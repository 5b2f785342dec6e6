"""Messages to and from a model, as providers and telemetry write them: who said what, asked for what, returned what."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.json_lines import UNREADABLE
from batonpass.adapters.session_files.told_values import as_arguments, as_mapping, as_objects, as_text


class CallInMessage(Struct, frozen=True):
    """A call that a model asks for."""

    id: str
    tool: str
    arguments: dict[str, Any]


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One message."""

    role: str
    text: str = ""
    calls: tuple[CallInMessage, ...] = ()
    results: tuple[tuple[str, str], ...] = ()  # of calls, by their ids

    @property
    def is_of_user(self) -> bool:
        """Return whether it has words to the agent."""
        return self.role == "user" and bool(self.text.strip())


def read_messages(text: str | None) -> list[ChatMessage]:
    """Return the messages in a text of JSON; none if it is something else."""
    try:
        told = msgspec.json.decode(text or "[]")
    except UNREADABLE:
        return []
    return [_message(one) for one in as_objects([told] if isinstance(told, dict) else told)]


def spoken(messages: list[ChatMessage]) -> str:
    """Return the words of all messages, one below the other."""
    return "\n".join(one.text for one in messages if one.text.strip())


def text_of(value: object) -> str:
    """Return a value as a text: itself if it is one, else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def _message(told: Mapping[str, Any]) -> ChatMessage:
    role = as_text(told.get("role")) or ""
    if told.get("type") == "function_call_output":
        result = (str(told.get("call_id")), text_of(told.get("output")))
        return ChatMessage(role="tool", results=(result,))
    if told.get("type") == "function_call":
        return ChatMessage(role="assistant", calls=tuple(_call(told, told.get("call_id"))))
    if (answered := as_text(told.get("tool_call_id"))) is not None:
        return ChatMessage(role="tool", results=((answered, _words(told.get("content"))),))
    parts = list(as_objects(told.get("parts"))) or list(as_objects(told.get("content")))
    asked = [
        one for part in parts if part.get("type") in {"tool_call", "tool_use"} for one in _call(part, part.get("id"))
    ]
    asked += [
        one
        for part in as_objects(told.get("tool_calls"))
        for one in _call(as_mapping(part.get("function")) or part, part.get("id"))
    ]
    words = _words(parts) if parts else _words(told.get("content"))
    return ChatMessage(role=role, text=words, calls=tuple(asked), results=tuple(_results(parts)))


def _call(told: Mapping[str, Any], name: object) -> Iterator[CallInMessage]:
    tool = as_text(told.get("name"))
    if tool is not None and isinstance(name, str):
        given = told.get("arguments") if "arguments" in told else told.get("args", told.get("input"))
        yield CallInMessage(name, tool, as_arguments({} if given is None else given))


def _results(parts: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for part in parts:
        if part.get("type") in {"tool_call_response", "tool_result"}:
            name = as_text(part.get("id")) or as_text(part.get("tool_use_id"))
            said = next((part[key] for key in ("response", "result", "content") if key in part), None)
            if name is not None:
                yield name, text_of(said)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    said = (
        one.get("text") if isinstance(one.get("text"), str) else one.get("content")
        for one in as_objects(content)
        if one.get("type") in {None, "text", "input_text", "output_text"}
    )
    return "\n".join(text for text in said if isinstance(text, str))
