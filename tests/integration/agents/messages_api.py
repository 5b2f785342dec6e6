"""A server on this machine that speaks the Messages API, follows a script, and remembers every request body."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

USAGE: Final = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


@dataclass(frozen=True, slots=True)
class Text:
    """The model says something."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """The model calls a tool; arguments that are a text are sent as they are, well-formed or not."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Status:
    """The provider answers with an error."""

    code: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer comes until the server is told to go on."""


Said = Text | Use | Status | Cut | Silence
Script = Callable[["Asked"], Said]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: everything that reaches the provider."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def system(self) -> str:
        """Return all that stands in the system's role."""
        return json.dumps(self.body.get("system", ""), ensure_ascii=False)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the messages."""
        return list(self.body["messages"])

    @property
    def words(self) -> str:
        """Return all that stands in messages, as it reads."""
        return "\n".join(_flat(message["content"]) for message in self.messages)

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the tools that are offered, by name."""
        return {tool["name"]: tool for tool in self.body.get("tools", [])}

    @property
    def answers(self) -> int:
        """Return how often the model has answered in this conversation."""
        return sum(message["role"] == "assistant" for message in self.messages)

    @property
    def results(self) -> list[dict[str, Any]]:
        """Return what the last calls returned."""
        content = self.messages[-1]["content"]
        return [block for block in content if isinstance(block, dict) and block["type"] == "tool_result"]


def _flat(content: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(_flat, content))
    if isinstance(content, dict):
        return "\n".join(_flat(content[name]) for name in ("text", "content", "input") if name in content)
    return json.dumps(content, ensure_ascii=False)


@dataclass(slots=True)
class MessagesApi:
    """The server: where it is, what it was asked, and what it still has to say."""

    script: Script
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def of(self, agent: str) -> list[Asked]:
        """Return what one agent's model was asked: agents are told apart by what their operator says."""
        return [asked for asked in self.asked if agent in asked.system]


class Handler(BaseHTTPRequestHandler):
    """Answers requests as the script of its server says."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer one request as the script says."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = Asked(body, {name.lower(): value for name, value in self.headers.items()})
        api = self.server.api
        with api.lock:
            api.asked.append(asked)
            number = len(api.asked)
        with suppress(BrokenPipeError, ConnectionResetError):
            self._answer(asked, api.script(asked), number)

    def _answer(self, asked: Asked, said: Said, number: int) -> None:
        if isinstance(said, Silence):
            self.server.api.reached.set()
            self.server.api.released.wait(20)
            said = Text("late")
        if isinstance(said, Status):
            error = {"type": "error", "error": {"type": "api_error", "message": f"injected {said.code}"}}
            self._send(json.dumps(error).encode(), code=said.code)
        elif "chat/completions" in self.path:
            self._send(json.dumps(_completion(asked, said, number)).encode())
        elif asked.body.get("stream"):
            self._stream(asked, said, number)
        else:
            message = _message(asked, number) | {"content": [_block(said, number)], "stop_reason": _reason(said)}
            data = json.dumps(message).encode()
            self._send(data, declared=len(data) + 500 if isinstance(said, Cut) else None)

    def _send(self, data: bytes, *, code: int = 200, declared: int | None = None) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(declared or len(data)))
        if code == 429:
            self.send_header("retry-after-ms", "5")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = declared is not None

    def _stream(self, asked: Asked, said: Said, number: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, event in _events(asked, said, number):
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n".encode())


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, api: MessagesApi) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.api = api


@contextmanager
def serving(script: Script) -> Iterator[MessagesApi]:
    """Serve a script on a port of this machine."""
    api = MessagesApi(script)
    server = Server(api)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _message(asked: Asked, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number:05d}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _completion(asked: Asked, said: Said, number: int) -> dict[str, Any]:
    """Return an answer in the form of the Chat Completions API."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text if isinstance(said, Text) else None}
    if isinstance(said, Use):
        called = {"name": said.name, "arguments": json.dumps(said.arguments)}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": called}]
    reason = "tool_calls" if isinstance(said, Use) else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _reason(said: Said) -> str:
    return "tool_use" if isinstance(said, Use) else "end_turn"


def _block(said: Said, number: int) -> dict[str, Any]:
    if isinstance(said, Use):
        return {"type": "tool_use", "id": f"toolu_{number:05d}", "name": said.name, "input": said.arguments}
    return {"type": "text", "text": said.text if isinstance(said, Text) else "half of an ans"}


def _events(asked: Asked, said: Said, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "message_start", {"message": _message(asked, number)}
    block = _block(said, number)
    if isinstance(said, Use):
        data = said.arguments if isinstance(said.arguments, str) else json.dumps(said.arguments)
        yield "content_block_start", {"index": 0, "content_block": {**block, "input": {}}}
        yield "content_block_delta", {"index": 0, "delta": {"type": "input_json_delta", "partial_json": data}}
    else:
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": block["text"]}}
    if isinstance(said, Cut):
        return
    yield "content_block_stop", {"index": 0}
    yield (
        "message_delta",
        {"delta": {"stop_reason": _reason(said), "stop_sequence": None}, "usage": {"output_tokens": 5}},
    )
    yield "message_stop", {}
