"""Hooks of the real program that are answered in this process: a recorder, or whatever a test puts in its place."""

import json
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from batonpass.adapters.coders.events import EVENTS
from tests.claude_code import hook_client

Answer: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    answer: Answer


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one event."""
        answer = self.server.answer(json.loads(self.rfile.read()))
        if answer:
            self.wfile.write(json.dumps(answer).encode())


@contextmanager
def hooked(project: Path, answer: Answer) -> Iterator[None]:
    """Let the hooks of a project be answered by a function, until this is left."""
    with tempfile.TemporaryDirectory() as folder:  # a path that is short enough for a socket
        place = str(Path(folder) / "hooks")
        server = _Server(place, _Handler)
        server.answer = answer
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        command = f"{sys.executable} -I -S {Path(hook_client.__file__)} {place}"
        hook = {"hooks": [{"type": "command", "command": command, "timeout": 60}]}
        settings = project / ".claude" / "settings.local.json"
        settings.write_text(json.dumps({"hooks": {event: [hook] for event in EVENTS}}), encoding="utf-8")
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
