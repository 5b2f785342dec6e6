"""Somebody who takes webhooks, without a network: an egress whose connections end at a thread of this process."""

import contextlib
import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

from batonpass.dispatch.egress import Egress, EgressLimits
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.model.policy.listed_place import read_listed

PLACE = "http://hooks.internal:9000"
URL = f"{PLACE}/T000/hunter2?key=hunter2"


@dataclass(frozen=True, slots=True)
class Taken:
    """One request as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """Return the event in it."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(slots=True)
class Receiver:
    """Answers each request with the next status; the last one stays."""

    statuses: list[int] = field(default_factory=lambda: [204])
    headers: str = ""
    taken: list[Taken] = field(default_factory=list)  # what was answered with 2xx
    asked: list[Taken] = field(default_factory=list)
    is_there: bool = True

    def egress(self) -> Egress:
        """Return the way to this receiver, which leads nowhere else."""
        rule = EgressRule([read_listed("hooks.internal")], resolve=lambda *_: ["127.0.0.1"])
        return Egress(rule, limits=EgressLimits(seconds=60), dial=self._dial)

    def _dial(self, _address: str, _port: int, seconds: float) -> socket.socket:
        if not self.is_there:
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        threading.Thread(target=self._answer, args=(theirs,), daemon=True).start()
        return ours

    def _answer(self, theirs: socket.socket) -> None:
        with theirs, contextlib.suppress(OSError, ValueError):
            got = b""
            while b"\r\n\r\n" not in got:
                got += theirs.recv(65536)
            head, _, body = got.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")[1:]
            headers = {name.lower(): said for name, _, said in (line.partition(": ") for line in lines)}
            while len(body) < int(headers["content-length"]):
                body += theirs.recv(65536)
            status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            self.asked.append(Taken(headers, body))
            if status < 300:
                self.taken.append(Taken(headers, body))
            theirs.sendall(f"HTTP/1.1 {status} Said\r\n{self.headers}Content-Length: 0\r\n\r\n".encode())
