"""JSON-RPC messages as they stand on a line: read only as far as needed, passed on byte for byte."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

# The protocol's own names for what a request says of its sender, from the revision of 2026-07-28 on.
_META: Final = "_meta"
_PREFIX: Final = "io.modelcontextprotocol/"
VERSION: Final = f"{_PREFIX}protocolVersion"
CLIENT_INFO: Final = f"{_PREFIX}clientInfo"
CLIENT_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

PARSE_ERROR: Final = -32700
CONNECTION_CLOSED: Final = -32000
REFUSED: Final = -32010  # the range from -32000 to -32019 is for implementations

Key = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Message:
    """One line, and what it says if it is an object in JSON."""

    line: bytes
    body: Mapping[str, Any] | None

    @property
    def method(self) -> str | None:
        """Return what is asked for or told; None for an answer, and for what is no message."""
        method = None if self.body is None else self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def key(self) -> Key | None:
        """Return what tells this request, or the request that this answers, from others: 1 is not "1"."""
        if self.body is None or "id" not in self.body or isinstance(self.body["id"], dict | list):
            return None
        return type(self.body["id"]).__name__, self.body["id"]

    @property
    def id(self) -> Any:  # noqa: ANN401 - a number or a text, as its sender chose
        """Return the id as it was given."""
        return None if self.body is None else self.body.get("id")

    @property
    def is_request(self) -> bool:
        """Return whether somebody waits for an answer."""
        return self.method is not None and self.key is not None

    @property
    def is_answer(self) -> bool:
        """Return whether it is what came of a request."""
        return self.method is None and self.body is not None and ("result" in self.body or "error" in self.body)

    @property
    def params(self) -> Mapping[str, Any]:
        """Return what a request or a notification says; nothing if that is no object."""
        return _table(self.body, "params")

    @property
    def result(self) -> Mapping[str, Any] | None:
        """Return what a request was answered with; None if it failed."""
        return None if self.body is None or "result" not in self.body else _table(self.body, "result")

    @property
    def error(self) -> Mapping[str, Any]:
        """Return how a request failed."""
        return _table(self.body, "error")

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return what is said about a request besides its arguments."""
        return _table(self.params, _META)

    @property
    def is_modern(self) -> bool:
        """Return whether the request says itself who sends it: such a sender takes no requests, only results."""
        return VERSION in self.meta


def read_messages(line: bytes, *, strict: bool = False) -> Iterator[Message]:
    """Yield what stands on a line: one message, or each of a batch; a batch must not carry a call past anybody.

    If `strict`, a line with a key that stands twice is no message: two readers may read two things in it.
    """
    try:
        found = json.loads(line, object_pairs_hook=_unique if strict else None)
    except (ValueError, RecursionError):
        yield Message(line, None)
        return
    if not isinstance(found, list):
        yield Message(line, found if isinstance(found, dict) else None)
        return
    for each in found:
        yield Message(encode(each), each if isinstance(each, dict) else None)


def encode(document: object) -> bytes:
    """Return a message as a line, without its end."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()


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
    """Return the answer to a request that cannot be fulfilled."""
    return encode({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": sentence}})


def tool_failure(to: Message, sentence: str) -> bytes:
    """Return the answer to a call that was not made, as a result that a model reads."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": sentence}], "isError": True}
    if to.is_modern:
        result["resultType"] = COMPLETE
    return answer(to, result)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _table(around: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    found = None if around is None else around.get(name)
    return found if isinstance(found, dict) else {}
