"""A program elsewhere: it speaks JSON lines over two pipes, and knows nothing of this package."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class RefusedError(Exception):
    """The server answered with an error: these are its members."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['detail']}")
        self.code: str = error["code"]
        self.detail: str = error["detail"]
        self.error = error


class Lines:
    """A server process, and the pipes to it."""

    def __init__(self, ledger: Path | str) -> None:
        program = str(Path(sys.executable).with_name("batonpass"))
        command = [program, "serve", "--json-lines", "--ledger", str(ledger)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0

    def write(self, *lines: bytes) -> None:
        """Write lines as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read one reply."""
        assert self.process.stdout is not None
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        return reply

    def send(self, act: str, request: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Return the answer to a request. Raises `RefusedError`."""
        self._number += 1
        line = {"id": self._number, "act": act, "request": request} | ({} if key is None else {"key": key})
        self.write(json.dumps(line).encode() + b"\n")
        reply = self.read()
        assert self._number == reply["id"]
        if "error" in reply:
            raise RefusedError(reply["error"])
        answer: dict[str, Any] = reply["answer"]
        return answer

    def end(self) -> int:
        """Close the pipe to the server, and return how it ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        return status


@contextmanager
def a_server(ledger: Path | str) -> Iterator[Lines]:
    """Start a server process for a ledger, and end it."""
    lines = Lines(ledger)
    try:
        yield lines
    finally:
        lines.end()
