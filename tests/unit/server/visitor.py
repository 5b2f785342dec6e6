"""A client without a network: it calls the application as a server would, and returns what came back."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message

HERE = "127.0.0.1:7420"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its status, its headers and its bytes."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever JSON can hold
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """Return the code of an error; None if it is none."""
        return self.json["error"]["code"] if self.status >= 400 else None


@dataclass(slots=True)
class Visitor:
    """Sends requests to an application with one token, and maybe in the name of one run."""

    app: ASGIApp
    token: str | None = None
    proof: str | None = None
    address: str = "127.0.0.1"
    sent: dict[str, str] = field(default_factory=dict)  # headers of every request

    def get(self, target: str, **headers: str) -> Answered:
        """Send a GET request."""
        return self.send("GET", target, b"", **headers)

    def post(self, target: str, said: object = None, **headers: str) -> Answered:
        """Send a POST request with JSON."""
        body = json.dumps({} if said is None else said).encode()
        return self.send("POST", target, body, **{"content-type": "application/json", **headers})

    def send(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answered:
        """Send any request. An underscore in the name of a header is a dash."""
        given = {"host": HERE, **self.sent, **{name.replace("_", "-"): text for name, text in headers.items()}}
        if body and "transfer-encoding" not in given:
            given.setdefault("content-length", str(len(body)))
        if self.token is not None:
            given.setdefault("authorization", f"Bearer {self.token}")
        if self.proof is not None:
            given.setdefault("batonpass-proof", self.proof)
        return asyncio.run(self._ask(method, target, body, given))

    def listen(
        self, target: str, most: int, meanwhile: Callable[[], object] | None = None, **headers: str
    ) -> list[dict[str, str]]:
        """Listen to a stream until so many events have come, or it ends.

        `meanwhile` is done once it has begun; if `most` is more than one and it begins with an event, after that one.
        """
        given = {"host": HERE, **{name.replace("_", "-"): text for name, text in headers.items()}}
        given |= {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        given |= {} if self.proof is None else {"batonpass-proof": self.proof}
        return asyncio.run(self._listen(target, most, meanwhile, given))

    async def _listen(
        self, target: str, most: int, meanwhile: Callable[[], object] | None, headers: Mapping[str, str]
    ) -> list[dict[str, str]]:
        heard: list[dict[str, str]] = []
        enough = asyncio.Event()
        asked = False

        async def receive() -> Message:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                assert 200 == message["status"], message
                if meanwhile is not None and "after=" not in target:
                    await asyncio.to_thread(meanwhile)
                return
            for part in message.get("body", b"").decode().replace("\r\n", "\n").split("\n\n"):
                lines = [line.partition(": ") for line in part.split("\n") if line and not line.startswith(":")]
                if lines and len(heard) < most:
                    heard.append({name: text for name, _, text in lines})
            if meanwhile is not None and "after=" in target and len(heard) == 1:
                await asyncio.to_thread(meanwhile)
            if len(heard) >= most:
                enough.set()

        await asyncio.wait_for(self.app(self._scope("GET", target, headers), receive, send), 60)
        return heard

    async def _ask(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        scope = self._scope(method, target, headers)
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Message] = []

        begun = asyncio.Event()

        async def receive() -> Message:
            if given:
                return given.pop(0)
            await begun.wait()  # a client that leaves at once would not see whether it was let in
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            await asyncio.sleep(0)
            sent.append(message)
            begun.set()

        await self.app(scope, receive, send)
        start = next(one for one in sent if one["type"] == "http.response.start")
        return Answered(
            start["status"],
            {name.decode(): text.decode() for name, text in start["headers"]},
            b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body"),
        )

    def _scope(self, method: str, target: str, headers: Mapping[str, str]) -> dict[str, Any]:
        parts = urlsplit(target)
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in headers.items()],
            "client": (self.address, 50000),
            "server": ("127.0.0.1", 7420),
        }
