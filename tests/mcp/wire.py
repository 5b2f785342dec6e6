"""A client that speaks lines, for what no well-behaved client does."""

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.mcp.servers import surroundings

PATIENCE = 60


class Wire:
    """A server's stdin and stdout. Leaving it closes both and waits for the process."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env=surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._number = 0

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_line(self, line: bytes) -> None:
        """Send whatever it is, and the end of a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a request and return its answer; what comes before it is passed over."""
        identifier = self.begin(method, **params)
        while (found := self.receive()).get("id") != identifier:
            pass
        return found

    def begin(self, method: str, **params: object) -> int:
        """Send a request and do not wait; return its id."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return the answer."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def receive(self) -> dict[str, Any]:
        """Return the next message; a line that is none is an empty one."""
        line = self.receive_line()
        assert line, "the server is gone"
        try:
            found = json.loads(line)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def receive_line(self) -> bytes:
        """Return the next line; nothing if there is none any more."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def kill(self) -> None:
        """End the process as nobody can prepare for."""
        self.process.send_signal(signal.SIGKILL)

    def leave(self) -> tuple[int, str]:
        """Close its input; return its exit code and what it said to people."""
        _, words = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, words.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            if error is not None:
                self.kill()
            self.process.communicate(timeout=PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
