"""Projects whose hooks are called as Claude Code calls them, and the recorders that stay behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.coders import client
from batonpass.adapters.coders.spool import find_spooled
from batonpass.model.bodies.body import RunGap, ToolCompleted, ToolDenied, ToolRequested
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.cli.shell import PATIENCE, surroundings

SESSION: Final = "0198e1f2-0000-7000-8000-000000000001"


@dataclass
class Hooked:
    """A project with a ledger, and whoever calls its hooks."""

    folder: Path
    words: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Return the ledger's home."""
        return self.folder / ".batonpass"

    def begin(self, event: bytes, *words: str) -> subprocess.Popen[bytes]:
        """Start the hook command and give it an event."""
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", client.__file__, "--project", str(self.folder), *self.words, *words],
            cwd=self.folder,
            env=surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(event)
        process.stdin.close()
        process.stdin = None
        return process

    def tell(self, event: bytes, *words: str) -> str:
        """Call the hook command, which must succeed, and return its answer."""
        return self.end(self.begin(event, *words))

    def end(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for a hook command, which must succeed, and return its answer."""
        out, err = process.communicate(timeout=PATIENCE)
        assert 0 == process.returncode, err
        return out.decode()

    def event(self, name: str, **more: object) -> bytes:
        """Return an event as Claude Code words it."""
        known = {"session_id": SESSION, "transcript_path": "/nowhere.jsonl", "cwd": str(self.folder), "prompt_id": "p1"}
        return json.dumps({**known, "hook_event_name": name, **more}).encode()

    def prompt(self) -> bytes:
        """Return what the human says first."""
        return self.event("UserPromptSubmit", prompt="Fix the rounding")

    def call(self, name: str, number: int, tool: str = "Read", **given: object) -> bytes:
        """Return an event about a call."""
        return self.event(
            name,
            tool_name=tool,
            tool_input=given or {"file_path": str(self.folder / "a.py")},
            tool_use_id=f"toolu_{number}",
            tool_response={"ok": True},
        )

    def recorders(self) -> list[int]:
        """Return the processes that record this project."""
        wanted = os.fsencode(f"--project\0{self.folder}\0")
        return [pid for pid, words in _processes() if client.MODULE.encode() in words and wanted in words]

    def recorder(self) -> int:
        """Return the one that there must be."""
        (found,) = self.recorders()
        return found

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """End a recorder and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            if number is signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)
        ends = time.monotonic() + PATIENCE
        while pid in self.recorders():
            assert time.monotonic() < ends
            time.sleep(0.01)

    def spooled(self) -> int:
        """Return how many events wait for a recorder."""
        return sum(1 for _ in find_spooled(self.home))

    def drained(self) -> None:
        """Wait until nothing waits any more."""
        ends = time.monotonic() + PATIENCE
        while self.spooled():
            assert time.monotonic() < ends
            time.sleep(0.02)

    def bodies(self) -> list[Any]:
        """Return what all receipts say; the ledger must be whole."""
        with Relay.open(f"sqlite:///{self.home}/ledger.db", home=self.home) as relay:
            relay.verify()
            with relay.store.view() as view:
                return [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery())]

    def requested(self) -> int:
        """Return how many calls were requested."""
        return sum(isinstance(body, ToolRequested) for body in self.bodies())

    def completed(self) -> int:
        """Return how many calls were completed."""
        return sum(isinstance(body, ToolCompleted) for body in self.bodies())

    def denied(self) -> list[str]:
        """Return the rules by which calls were denied."""
        return [body.rule for body in self.bodies() if isinstance(body, ToolDenied)]

    def gaps(self) -> int:
        """Return how many receipts there are about gaps."""
        return sum(isinstance(body, RunGap) for body in self.bodies())


def _processes() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # It may end while we look, and one that has ended already is nobody's recorder.
            with suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes()


@contextmanager
def shop_with_editor(place: Path, *, tools: str) -> Iterator[Hooked]:
    """Yield a project with a file and a sub-agent that has these tools; its recorder is ended afterwards."""
    hooked = Hooked(place)
    agents = hooked.folder / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "editor.md").write_text(
        f"---\nname: editor\ndescription: edits\ntools: {tools}\n---\nYou edit.\n", encoding="utf-8"
    )
    (hooked.folder / "a.py").write_text("one\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=hooked.folder, check=True)
    yield hooked
    for pid in hooked.recorders():
        hooked.kill(pid)
