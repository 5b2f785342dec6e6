"""What recording adds to a call and to a handoff of each framework, beside what the framework keeps by itself."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.effort import Effort
from bench.measure import Samples
from bench.peering import PeerFailedError
from bench.table import Row, p50, skipped

_ROOT: Final = Path(__file__).resolve().parent.parent
_ENVIRONMENTS: Final = _ROOT / ".venv" / "frameworks"
_KINDS: Final = {"call": "a tool call", "handoff": "a handoff to an agent in a tool"}
_OWN: Final = {"openai_agents": "its SQLiteSession", "langgraph": "its SqliteSaver"}
_SHOWN: Final = 2_000
# Nothing that a framework does here leaves this machine.
_SETTINGS: Final = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
}


def installed() -> list[str]:
    """Return the columns whose environments are there."""
    return sorted(path.parent.name for path in _ENVIRONMENTS.glob("*/.installed"))


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure every framework that is installed; a row says so if none is."""
    columns = installed()
    if not columns:
        return [skipped("frameworks", "run `make test-adapters`, which installs them")]
    return [row for column in columns for row in _rows(column, scratch / column, max(effort.starts // 3, 3))]


def _rows(column: str, folder: Path, turns: int) -> Iterator[Row]:
    taken = _play(column, folder, turns)
    for kind, words in _KINDS.items():
        figures = {way: p50(Samples(tuple(seconds))) for way, seconds in taken[kind].items()}
        what = f"{column}: {words}, recorded and durable"
        yield Row(what=what, ours=figures["with"], against="the same without us", theirs=figures["without"])
        if (own := figures.get("own")) is not None:
            yield Row(what=what, ours=figures["with"], against=f"the same with {_OWN[column]}", theirs=own)


def _play(column: str, folder: Path, turns: int) -> dict[str, dict[str, list[float]]]:
    folder.mkdir(parents=True)
    python = _ENVIRONMENTS / column / "bin" / "python"
    command = [str(python), "-m", "bench.framework_child", column, str(folder), str(turns)]
    played = subprocess.run(
        command, cwd=_ROOT, env={**os.environ, **_SETTINGS}, capture_output=True, text=True, check=False
    )
    if played.returncode:
        raise PeerFailedError(f"{column}: {played.stderr[-_SHOWN:]}")
    told: dict[str, dict[str, list[float]]] = json.loads(played.stdout.splitlines()[-1])
    return told
