"""A Messages API on the loopback interface that plays a script, so that the real Claude Code works without a model.

A script says for each prompt, the human's or a sub-agent's, what the model answers turn by turn.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Final, Self, TypeAlias

Block: TypeAlias = dict[str, Any]
Turn: TypeAlias = Sequence[Block]
Script: TypeAlias = Mapping[str, Sequence[Turn]]  # by words that the prompt contains

_DONE: Final = "Nothing more to do."
_BRIEFING: Final = re.compile(r"\[\[(\w+) briefing\]\].*?\[\[\1 end of briefing\]\]", re.DOTALL)


def says(text: str) -> Block:
    """Return what the model says."""
    return {"type": "text", "text": text}


def uses(call: str, tool: str, **arguments: object) -> Block:
    """Return a tool call of the model, under an id of our choice."""
    return {"type": "tool_use", "id": f"toolu_{call}", "name": tool, "input": arguments}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the program made: what it sent as the conversation so far."""

    prompt: str
    turn: int
    body: Mapping[str, Any]


class ScriptedApi:
    """Answers as the script says, from when it is entered until it is left."""

    def __init__(self, script: Script, *, input_tokens: int = 10) -> None:
        self.script = script
        self.input_tokens = input_tokens  # what it claims to have read: near the limit, the program compacts
        self.asked: list[Asked] = []
        self._numbers = count(1)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, body: Mapping[str, Any]) -> tuple[str, list[Block]]:
        """Return the id and the blocks of the next message."""
        prompt, turn = self._place(body.get("messages", []))
        self.asked.append(Asked(prompt, turn, body))
        turns = self.script.get(prompt, ())
        tools = {tool.get("name") for tool in body.get("tools", [])}
        played = turns[turn] if tools and turn < len(turns) else [says(_DONE)]
        return f"msg_{next(self._numbers):05d}", [_renamed(block, tools) for block in played]

    def _place(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
        """Return the last prompt of the script that was said, and how many times the model has answered since."""
        turn = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                turn += 1
                continue
            words = _words(message)
            # The longest: one prompt may begin with another.
            if found := max((prompt for prompt in self.script if prompt in words), key=len, default=None):
                return found, turn
        return "", turn


def _renamed(block: Block, tools: set[Any]) -> Block:
    # What is `Agent` now was `Task` before; the script says Agent.
    if block.get("name") == "Agent" and "Agent" not in tools and "Task" in tools:
        return {**block, "name": "Task"}
    return block


def _words(message: Mapping[str, Any]) -> str:
    """Return what was said, without what tools returned and without briefings: those repeat prompts."""
    content = message["content"]
    if not isinstance(content, str):
        content = "\n".join(block["text"] for block in content if block.get("type") == "text")
    return _BRIEFING.sub("", content)


class _Server(ThreadingHTTPServer):
    api: ScriptedApi


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            self._reply({"input_tokens": self.server.api.input_tokens})
        elif "/v1/messages" not in self.path:
            self._reply({})
        else:
            self._message(body)

    def _message(self, body: Mapping[str, Any]) -> None:
        number, blocks = self.server.api.answer(body)
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": number,
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.server.api.input_tokens,
                "output_tokens": 5,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }
        if body.get("stream"):
            self._stream(message)
        else:
            self._reply(message)

    def _stream(self, message: Mapping[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self._event("message_start", message={**message, "content": [], "stop_reason": None})
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            self._event("content_block_start", index=index, content_block=empty)
            self._event("content_block_delta", index=index, delta=delta)
            self._event("content_block_stop", index=index)
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        self._event("message_delta", delta=ended, usage={"output_tokens": 5})
        self._event("message_stop")

    def _event(self, kind: str, **data: object) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())

    def _reply(self, document: Mapping[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
