"""JSON-RPC messages: their parts, and how we write our own."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from batonpass.adapters.mcp.messages.json_text import UnfitNumber, write_json

# The protocol's names for a request's facts about its sender, from revision 2026-07-28 on.
META: Final = "_meta"
_PREFIX: Final = "io.modelcontextprotocol/"
VERSION: Final = f"{_PREFIX}protocolVersion"
CLIENT_INFO: Final = f"{_PREFIX}clientInfo"
CLIENT_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
CONNECTION_CLOSED: Final = -32000
REFUSED: Final = -32010  # -32000 to -32019 are reserved for implementations

# The protocol's own keys, of a message and of its params. A server that ignores case reads other spellings as these.
OWN_KEYS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
OWN_PARAMS: Final = frozenset(
    {
        *(META, "name", "arguments", "uri", "ref", "argument", "context", "notifications", "cursor", "level"),
        *("task", "taskId", "requestId", "requestState", "inputResponses", "progressToken"),
        *("protocolVersion", "capabilities", "clientInfo"),
    }
)

Key = tuple[str, object]


class Message(Struct, frozen=True):
    """One message, the line that is passed on for it, and its problem if it has one."""

    line: bytes
    body: Mapping[str, Any] | None
    fault: str | None = None  # why an enforcing proxy does not pass it on
    flags: tuple[str, ...] = ()  # oddities in the way it arrived

    @property
    def method(self) -> str | None:
        """Return the method of a request or notification; None for an answer, and for something that is no message."""
        method = None if self.body is None else self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def key(self) -> Key | None:
        """Return the key that identifies this request, or the request that this answers. 1 and "1" are different."""
        if self.body is None or "id" not in self.body or isinstance(self.body["id"], dict | list):
            return None
        given = self.body["id"]
        # A server may answer 1.0 with 1, which Python treats as equal. True, which Python takes for 1, is kept apart.
        return "number" if is_number(given) else type(given).__name__, given

    @property
    def id(self) -> Any:  # noqa: ANN401 - a number or a text, as its sender chose
        """Return the id as it was given."""
        return None if self.body is None else self.body.get("id")

    @property
    def is_request(self) -> bool:
        """Return whether its sender waits for an answer."""
        return self.method is not None and self.key is not None

    @property
    def is_answer(self) -> bool:
        """Return whether it is the answer to a request."""
        return self.method is None and self.body is not None and ("result" in self.body or "error" in self.body)

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the params of a request or notification; empty if they are no object."""
        return _table(self.body, "params")

    @property
    def result(self) -> Mapping[str, Any] | None:
        """Return the result in an answer; None if the request failed."""
        return None if self.body is None or "result" not in self.body else _table(self.body, "result")

    @property
    def error(self) -> Mapping[str, Any]:
        """Return the error in an answer; empty if there is none."""
        return _table(self.body, "error")

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the metadata of a request."""
        return _table(self.params, META)

    @property
    def is_modern(self) -> bool:
        """Return whether the request itself says who sends it. Such a client takes no requests, only results."""
        return VERSION in self.meta


def is_number(given: object) -> bool:
    """Return whether a value is a JSON number. In Python True is a number too, in JSON it is not."""
    return isinstance(given, int | float | UnfitNumber) and not isinstance(given, bool)


def encode(document: object) -> bytes:
    """Return a message as a line, without its line end."""
    return write_json(document)


def request(identifier: str, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request."""
    return encode({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """Return a notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def answer(to: Message, result: Mapping[str, Any]) -> bytes:
    """Return the answer to a request."""
    return encode({"jsonrpc": "2.0", "id": to.id, "result": result})


def failure(identifier: object, code: int, sentence: str) -> bytes:
    """Return the error answer to a request."""
    return encode({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": sentence}})


def tool_failure(to: Message, sentence: str) -> bytes:
    """Return the answer to a call that was not made, as a result that a model reads."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": sentence}], "isError": True}
    if to.is_modern:
        result["resultType"] = COMPLETE
    return answer(to, result)


def _table(around: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    found = None if around is None else around.get(name)
    return found if isinstance(found, dict) else {}
