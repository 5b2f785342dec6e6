"""`batonpass serve` in a process of its own, which a test may ask, end, kill and start again."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 60
PROGRAM = str(Path(sys.executable).with_name("batonpass"))


class Served:
    """A server that was started, and how to ask it."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.address = directory / "address"
        self.port = 0
        self._options = options
        self.start()

    def start(self) -> None:
        """Start it, and return when it listens; after the first time at the port that it had."""
        self.address.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", str(self.port), "--address-file", "address", *self._options],
            cwd=self.directory,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "USER": "ana"},
        )
        until = time.monotonic() + PATIENCE
        while not (self.address.exists() and self.address.read_text()):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        self.port = int(self.address.read_text().rpartition(":")[2])

    def get(self, path: str, token: str | None) -> tuple[int, Any]:
        """Ask it, and return the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def end(self) -> tuple[int, str]:
        """Ask it to end; return its exit code and all that it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def kill(self) -> None:
        """End it at once, whatever it is at."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
