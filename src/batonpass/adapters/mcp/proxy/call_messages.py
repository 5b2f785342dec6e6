"""Decides which messages of a client are calls, and reads the request in each.

A message passes unjudged only if it is known to name nothing that a server acts on. Every other message is a call, and
an unknown method gets the strictest treatment.
"""

from collections.abc import Mapping
from typing import Any, Final

from batonpass.adapters.mcp.messages.message import META, Message
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxiedCall, proxied
from batonpass.adapters.mcp.server_declaration import COMPLETION, METHOD, PROMPT, RESOURCE, SUBSCRIPTION, Hints, Server

CALL: Final = "tools/call"
LISTEN: Final = "subscriptions/listen"

# From every revision up to 2026-07-28 and its extension for tasks. The methods for tasks name a task that a call began.
_PASSED: Final = frozenset(
    {
        *("initialize", "server/discover", "ping", "logging/setLevel"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/unsubscribe"),
        *("tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"),
    }
)
_NOTIFICATIONS: Final = "notifications/"
_READINGS: Final = {
    "resources/read": RESOURCE,
    "resources/subscribe": SUBSCRIPTION,
    LISTEN: SUBSCRIPTION,
    "prompts/get": PROMPT,
    "completion/complete": COMPLETION,
}
# Fields that continue a request about which the server had a question. They are not part of the request itself.
_PLUMBING: Final = frozenset({META, "inputResponses", "requestState"})
_NAMED_BY: Final = {
    CALL: "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
}
_ARGUMENTS: Final = "arguments"


def is_call(message: Message) -> bool:
    """Return whether a message asks a server for something that must be judged and recorded."""
    method = message.method
    if method is None or method in _PASSED:
        return False
    if method == LISTEN:
        # Listening to changed lists reveals nothing; listening to resources names them.
        wanted = message.params.get("notifications")
        return not isinstance(wanted, dict) or not all(isinstance(value, bool) for value in wanted.values())
    # A server that ignores the id would act on any other method without one, and on a notification with one.
    return message.is_request or not method.startswith(_NOTIFICATIONS)


def find_wrong_params(message: Message) -> str | None:
    """Return why the request in a call is unclear; None if it is clear. An unclear call cannot be judged."""
    argument = _NAMED_BY.get(message.method or "")
    if argument is None:
        return None
    if not isinstance(message.params.get(argument), str):
        return f"{message.method} needs the text {argument}"
    if not isinstance(message.params.get(_ARGUMENTS), dict | None):
        return f"{_ARGUMENTS} of {message.method} are no object"
    return None


def read_call(message: Message, server: Server, hints: Hints) -> ProxiedCall:
    """Return the call that a message asks for, with all of its params: a path may stand anywhere in them."""
    method, said = message.method or "", (message.body or {}).get("params", {})
    if method == CALL:
        name = message.params.get("name")
        named = name if isinstance(name, str) else repr(name)
        declared, of, given = server.declare(named, hints), server.resource_of(named), _arguments(said)
    elif method in _READINGS:
        declared, of = server.declare_reading(_READINGS[method]), f"{server.name}/{method}"
        given = _without_plumbing(said)
    else:
        declared, of = server.declare_unknown(METHOD), f"{server.name}/methods/{method}"
        given = {"method": method, "params": _without_plumbing(said)}
    return proxied(declared, given, of, said=said, local=server.local and method == CALL, flags=message.flags)


def _arguments(said: object) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        return {"params": said}
    given = said.get(_ARGUMENTS)
    if isinstance(given, dict):
        return given
    return {} if given is None else {_ARGUMENTS: given}


def _without_plumbing(said: object) -> dict[str, Any]:
    if not isinstance(said, dict):
        return {"params": said}
    return {name: value for name, value in said.items() if name not in _PLUMBING}
