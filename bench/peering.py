"""Peers: other software that does the nearest same thing, in a process and an environment of its own."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.batons import words

_ROOT: Final = Path(__file__).resolve().parent.parent
_HOME: Final = _ROOT / ".venv" / "bench"
_PROGRAMS: Final = {
    "DBOS": "bench.peers.dbos_peer",
    "LangGraph": "bench.peers.langgraph_peer",
    "attenu-guard": "bench.peers.attenu_peer",
    "tenuo": "bench.peers.tenuo_peer",
}
# Nothing that a peer does here leaves this machine.
_SETTINGS: Final = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
_SHOWN: Final = 2_000


class PeerFailedError(Exception):
    """A peer ended instead of answering; says what it left behind."""


class Peer:
    """One peer that was started: it measures what it is asked to, in its own process."""

    def __init__(self, name: str, process: "subprocess.Popen[str]", log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    def time(self, acts: int) -> list[float]:
        """Return how many seconds each of so many handoffs took."""
        return list(self._ask({"time": acts}))

    def race(self, threads: int, seconds: float) -> float:
        """Return how many handoffs in a second so many threads did together."""
        return float(self._ask({"race": float(seconds), "threads": threads}))

    def tell(self, what: str) -> Any:  # noqa: ANN401 - each order has an answer of its own
        """Return what else it can tell."""
        return self._ask({"tell": what})

    def _ask(self, order: Mapping[str, object]) -> Any:  # noqa: ANN401 - each order has an answer of its own
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("a peer is started with pipes")
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PeerFailedError(f"{self.name}: {self._log.read_text(encoding='utf-8')[-_SHOWN:]}")
        return json.loads(line)


def program_of_peer(name: str) -> Path | None:
    """Return where a peer's command is; None if it is not installed."""
    path = _HOME / "bin" / name
    return path if path.exists() else None


def missing_peers() -> str | None:
    """Return what has to be done first; None if peers can be started."""
    return None if (_HOME / ".installed").exists() else "run `make bench`, which installs them"


@contextmanager
def started(name: str, scratch: Path, url: str, **more: object) -> Iterator[Peer]:
    """Start a peer on a database, and end it afterwards."""
    log = scratch / f"{name}-{os.urandom(4).hex()}.log"
    asked = json.dumps({"url": url, "words": words(), "durable": True, "connections": 8, **more})
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [_HOME / "bin" / "python", "-m", _PROGRAMS[name], asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=_ROOT,
            env={**os.environ, **_SETTINGS},
        )
    try:
        yield Peer(name, process, log)
    finally:
        _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
