"""How long Claude Code waits for its hook: a fresh process for each event, until what it tells is durable."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from batonpass import Relay
from batonpass.adapters.coders import client
from batonpass.adapters.coders.client import HookInvocation
from batonpass.adapters.coders.resident import ask_who
from batonpass.relay import recording_of
from bench.effort import Effort
from bench.measure import Act, Samples, time_act, time_in_turns
from bench.table import Row, p50, p99, within

_BARE = [sys.executable, "-I", "-S"]
_DIRECTLY = (
    "import json, sys; from pathlib import Path; from batonpass import Relay; "
    "from batonpass.adapters.coders.session.hook_recorder import HookRecorder; "
    "relay = Relay.open(f'sqlite:///{sys.argv[1]}/.batonpass/ledger.db', keys_in_files=True); "
    "HookRecorder(relay, Path(sys.argv[1])).handle(json.load(sys.stdin))"
)


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure the hook command with its recorder running, without one, and what it would take without any."""
    warm, direct = (project_at(scratch / name) for name in ("warm", "direct"))
    events = map(event_bytes, count())
    contenders: dict[str, Act] = {
        "nothing": lambda: run_event([*_BARE, "-c", "pass"], b""),
        "hook": lambda: run_event(hook_command(warm), next(events)),
    }
    with ended(warm):
        taken = time_in_turns(contenders, turns=effort.starts, acts=10)
    directly = [sys.executable, "-c", _DIRECTLY, str(direct)]
    slow = time_in_turns({"direct": lambda: run_event(directly, next(events))}, turns=effort.starts, acts=1)
    cold = Samples(tuple(_start_cold(project_at(scratch / f"cold-{turn}"), next(events)) for turn in range(3)))
    rows = {
        "Claude Code hook, one event, durable": (p50(taken["hook"]), within(0.100)),
        "the same, p99": (p99(taken["hook"]), None),
        "the same, nobody there to record": (p50(cold), None),
        "the same without a process that stays": (p50(slow["direct"]), None),
    }
    bare = p50(taken["nothing"])
    return [
        Row(what=what, ours=ours, against="python -I -S -c pass", theirs=bare, goal=goal)
        for what, (ours, goal) in rows.items()
    ]


def project_at(folder: Path) -> Path:
    """Make a project with an empty ledger."""
    home = folder / ".batonpass"
    home.mkdir(parents=True, mode=0o700)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # noqa: S607 - whichever git there is
    with Relay.open(f"sqlite:///{home}/ledger.db") as relay:
        _ = recording_of(relay)
    return folder


def event_bytes(number: int) -> bytes:
    """Return an event as Claude Code tells it; each is another call."""
    return json.dumps(
        {
            "hook_event_name": "PreToolUse",
            "session_id": "0198e1f2-0000-7000-8000-000000000001",
            "prompt_id": "p1",
            "tool_name": "Read",
            "tool_use_id": f"toolu_{number}",
            "tool_input": {"file_path": "src/invoice.py"},
        },
    ).encode()


def hook_command(project: Path) -> list[str]:
    """Return the command that Claude Code starts for each event."""
    return [*_BARE, client.__file__, "--project", str(project), "--patience", "60"]


def run_event(command: Sequence[str], event: bytes) -> None:
    """Start a process, tell it an event, and wait until it ends."""
    subprocess.run(command, input=event, stdout=subprocess.DEVNULL, check=True)


def _start_cold(project: Path, event: bytes) -> float:
    with ended(project):
        return time_act(lambda: run_event(hook_command(project), event), 1)[0]


@contextmanager
def ended(project: Path) -> Iterator[None]:
    """End the recorder that was started for a project."""
    try:
        yield
    finally:
        call = HookInvocation(["--project", str(project)], dict(os.environ))
        answer = ask_who(call, 60)
        if answer is not None:
            os.kill(int(answer.rpartition(" ")[2]), signal.SIGTERM)
        while Path(call.home, f"{call.name}.sock").exists():
            time.sleep(0.01)
