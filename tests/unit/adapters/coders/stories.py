"""What real agents told their hooks in one session each, played again: the files change as they changed then.

In each, the model edits a.py with the agent's own editor, runs `sed` on b.txt, tries a command that is denied, and has
a sub-agent run `sed` on b.txt as well. The events were recorded from the programs, with a scripted model behind them.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.accounts.blame.blame_values import Maker
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, read_file
from batonpass.accounts.blame.file_changes import place_of
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.tool_kinds import Coder, ToolKind
from batonpass.relay import Relay

PAYLOADS: Final = Path(__file__).with_name("payloads")
RULES: Final = """
[policy]
enforce = true

[[rules]]
name = "no-denials"
on = "call"
gate = "deny"
tool = "Bash(echo DENY-ME *)"
"""
DENIED: Final = "echo DENY-ME"


def payloads(name: str, project: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a recorded session, as if it had happened in this project."""
    text = (PAYLOADS / f"{name}.jsonl").read_text(encoding="utf-8")
    for line in text.replace("PROJECT", str(project)).replace("HOMEDIR", str(project.parent / "home")).splitlines():
        yield json.loads(line)


def begin_project(project: Path) -> None:
    """Write the files that the sessions began with, and the rule that denies."""
    (project / "a.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    (project / "b.txt").write_text("alpha\nbeta\n", encoding="utf-8")
    (project / "batonpass.toml").write_text(RULES, encoding="utf-8")
    for name in ("a.py", "b.txt"):
        # As in life, they are older than the session: the clock of a file system is coarse.
        os.utime(project / name, (1_700_000_000, 1_700_000_000))


Tell = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def play(coder: Coder, events: Iterator[dict[str, Any]], project: Path, tell: Tell) -> list[Mapping[str, Any]]:
    """Tell the events, with the effects of each call before its result; return the answers to denied calls."""
    denied = []
    for raw in events:
        event = DIALECTS[coder].read(raw)
        if event is not None and event.name == "PostToolUse":
            if event.kind is ToolKind.SHELL:
                subprocess.run(["/bin/sh", "-c", event.command or ""], cwd=project, check=True)
            elif event.kind is ToolKind.WRITER:
                path = project / "a.py"
                path.write_text(path.read_text(encoding="utf-8").replace("return 1", "return 2"), encoding="utf-8")
        answer = tell(raw)
        if event is not None and event.name == "PreToolUse" and DENIED in (event.command or ""):
            denied.append(answer)
    return denied


def teller(recorder: HookRecorder, coder: Coder) -> Tell:
    """Return what tells a recorder the events of an agent's own hooks."""
    return lambda raw: recorder.handle(raw, coder)


def maker_of(relay: Relay, path: Path, line: int) -> Maker:
    """Return who wrote a line, of which there must be one."""
    asked = AskedFile(place=place_of(path), data=read_file(path), environment={"PATH": "/usr/bin:/bin"})
    with relay.store.view() as view:
        found = blame_file(view, asked, Lines(first=line, last=line))
    (call,) = found.lines[0].calls
    return found.makers[call]
