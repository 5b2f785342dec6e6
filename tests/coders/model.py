"""A model that says what a script says, on loopback, in the three forms that coding agents speak."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, ClassVar, Final

from msgspec import Struct

# Replaced by the id of the sub-agent that the request mentions last: only the agent itself knows it.
SUB_AGENT: Final = "@sub-agent@"
_SUB_AGENT: Final = re.compile(r'agent_id\\*": ?\\*"([0-9a-f-]{36})')


class Use(Struct, frozen=True):
    """A call of a tool."""

    tool: str
    given: Mapping[str, Any]
    namespace: str | None = None
    text: str | None = None  # the input of a tool that takes a text instead of JSON


Step = Use | str
Script = Mapping[str, Sequence[Step]]  # by a word of the task that begins it


def _texts(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _turns(path: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield who speaks in a request, and what: `user` with words, `call`, or anything else."""
    if path.endswith("/responses"):
        for item in body.get("input", []):
            kind = item.get("type", "message")
            if kind == "message":
                yield "user" if item.get("role") == "user" else "other", _texts(item.get("content"))
            else:
                yield "call" if kind.endswith("_call") else "result", ""
    elif path.endswith("/chat/completions"):
        for message in body.get("messages", []):
            called = "call" if message.get("tool_calls") else "result" if message["role"] == "tool" else "other"
            yield "user" if message["role"] == "user" else called, _texts(message.get("content"))
    else:
        for content in body.get("contents", []):
            parts = content.get("parts", [])
            called = "call" if any("functionCall" in part for part in parts) else ""
            answered = "result" if any("functionResponse" in part for part in parts) else ""
            spoken = "user" if content.get("role") == "user" else "other"
            yield called or answered or spoken, _texts(parts)


def choose(path: str, body: Mapping[str, Any], script: Script) -> Step:
    """Return what the model does next: the step after as many calls as were made since the task was given."""
    turns = list(_turns(path, body))
    task, begun = None, -1
    for number, (who, words) in enumerate(turns):
        found = next((one for one in script if one in words), None) if who == "user" else None
        task, begun = (found, number) if found is not None else (task, begun)
    if task is None:
        return "nothing to do"
    steps, previous = 0, ""
    for who, _ in turns[begun + 1 :]:
        steps += who == "call" and previous != "call"
        previous = who if who != "other" else previous
    return script[task][steps] if steps < len(script[task]) else "all done"


class Speaker(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    script: ClassVar[Script] = {}
    numbers: ClassVar[Iterator[int]] = count(1)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """List the one model."""
        self._send({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        """Say the next step of the script."""
        raw = self._body()
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        step = choose(path, body, self.script)
        if isinstance(step, Use) and not body.get("tools"):
            step = "a title"
        if isinstance(step, Use):
            found = _SUB_AGENT.findall(raw.decode("utf-8", "replace"))
            text = json.dumps(dict(step.given)).replace(SUB_AGENT, found[-1] if found else "")
            step = Use(step.tool, json.loads(text), step.namespace, step.text)
        if path.endswith("/responses"):
            self._respond(step)
        elif path.endswith("/chat/completions"):
            self._chat(step, stream=bool(body.get("stream")))
        else:
            self._generate(step, path, body)

    def _body(self) -> bytes:
        if (length := self.headers.get("Content-Length")) is not None:
            return self.rfile.read(int(length))
        parts = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return parts

    def _respond(self, step: Step) -> None:
        number = next(self.numbers)
        item: dict[str, Any]
        if isinstance(step, str):
            words = [{"type": "output_text", "text": step, "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": words}
        elif step.text is not None:
            item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "input": step.text}
        else:
            given = json.dumps(step.given)
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "arguments": given}
        if isinstance(step, Use):
            item |= {"name": step.tool, **({} if step.namespace is None else {"namespace": step.namespace})}
        item["status"] = "completed"
        base = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": "fake-model", "output": []}
        used = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        done = {**base, "status": "completed", "output": [item], "usage": used}
        self._stream(
            {"type": "response.created", "response": {**base, "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
            named=True,
        )

    def _chat(self, step: Step, *, stream: bool) -> None:
        number = next(self.numbers)
        message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else ""}
        if isinstance(step, Use):
            function = {"name": step.tool, "arguments": json.dumps(step.given)}
            message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        end = "stop" if isinstance(step, str) else "tool_calls"
        base = {"id": f"chatcmpl-{number}", "created": 0, "model": "fake-model"}
        used = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not stream:
            choice = {"index": 0, "finish_reason": end, "message": message}
            self._send({**base, "object": "chat.completion", "choices": [choice], "usage": used})
            return
        chunk = {**base, "object": "chat.completion.chunk"}
        self._stream(
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {**chunk, "choices": [], "usage": used},
            done=True,
        )

    def _generate(self, step: Step, path: str, body: Mapping[str, Any]) -> None:
        if "countTokens" in path:
            self._send({"totalTokens": 1})
            return
        part = {"text": step} if isinstance(step, str) else {"functionCall": {"name": step.tool, "args": step.given}}
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            part = {"text": json.dumps({"reasoning": "scripted", "next_speaker": "user", "model_choice": "pro"})}
        said = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        answer = {"candidates": [said], "usageMetadata": {"totalTokenCount": 2}, "modelVersion": "fake-model"}
        if "stream" in path:
            self._stream(answer)
        else:
            self._send(answer)

    def _stream(self, *events: Mapping[str, Any], named: bool = False, done: bool = False) -> None:
        lines = [f"event: {event.get('type')}\n" * named + f"data: {json.dumps(event)}\n\n" for event in events]
        self._reply("".join(lines) + "data: [DONE]\n\n" * done, "text/event-stream")

    def _send(self, answer: object) -> None:
        self._reply(json.dumps(answer), "application/json")

    def _reply(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def scripted_model(script: Script) -> Iterator[str]:
    """Run a model with a script; yield its address."""
    speaker = type("ScriptedSpeaker", (Speaker,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), speaker)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
