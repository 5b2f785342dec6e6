"""Sessions that the real programs kept of one small job, and the repository in which they worked.

In each session a person asks for a change. The agent edits `src/invoice.py`, writes `src/tax.py`, changes `notes.txt`
in a shell, tries an edit that does not fit and a command that fails, and hands a task to a sub-agent, which writes
`src/discount.py` and changes `notes.txt` in a shell as well. Paths are written as `/PROJECT`; long texts are cut.
"""

import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from batonpass.adapters.session_files.readers.cline import ClineSessions
from batonpass.adapters.session_files.readers.codex import CodexSessions
from batonpass.adapters.session_files.readers.copilot import CopilotSessions
from batonpass.adapters.session_files.readers.droid import DroidSessions
from batonpass.adapters.session_files.readers.gemini import GeminiSessions
from batonpass.adapters.session_files.readers.goose import GooseSessions
from batonpass.adapters.session_files.readers.opencode import OpenCodeSessions
from batonpass.adapters.session_files.readers.qwen import QwenSessions
from batonpass.adapters.session_files.session_reader import SessionReader

RECORDED: Final = Path(__file__).parent / "recorded"
PROMPT: Final = "PARENT-TASK: round totals to cents and add a tax module"
TASK: Final = "CHILD-TASK: add a discount helper"

INVOICE: Final = (
    "def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return round(result, 2)\n"
)
BEFORE: Final = {
    "src/invoice.py": INVOICE.replace("round(result, 2)", "result"),
    "notes.txt": "alpha\nbeta\ngamma\n",
    "old.txt": "one\ntwo\n",
}
TAX: Final = "RATE = 19\n\ndef tax(total):\n    return total * RATE // 100\n"
DISCOUNT: Final = "def discount(total):\n    return total * 9 // 10\n"
NOTES: Final = "alpha\nBETA\ngamma\ndelta\n"
_BEGUN: Final = "2026-11-17T12:00:00Z"  # before all sessions
NOBODY: Final = "-"


@dataclass(frozen=True, kw_only=True)
class RecordedAgent:
    """One program, the version that kept the session, and what blame has to say."""

    reader: type[SessionReader]
    version: str | None
    after: Mapping[str, str] = field(
        default_factory=lambda: {"src/invoice.py": INVOICE, "src/tax.py": TAX, "src/discount.py": DISCOUNT}
    )
    # Who wrote each line: m the main conversation, s the sub-agent, - nobody of whom the session tells.
    writers: Mapping[str, str] = field(
        default_factory=lambda: {"src/invoice.py": "----m", "src/tax.py": "mmmm", "src/discount.py": "ss"}
    )
    failed: int = 2  # the edit that does not fit, the command that fails
    links: frozenset[str] = frozenset({"meta", "result"})
    prompt: str = PROMPT
    has_sub_agents: bool = True
    model: str | None = "fake-model"

    def __str__(self) -> str:
        return self.reader.program


AGENTS: Final = (
    RecordedAgent(
        reader=CodexSessions,
        version="0.169.0",
        after={
            "src/invoice.py": INVOICE.replace("result = 0", "result = sum(())"),
            "src/vat.py": TAX.replace("19", "7"),
            "src/discount.py": DISCOUNT,
        },
        writers={"src/invoice.py": "-m--m", "src/vat.py": "mmmm", "src/discount.py": "ss"},
        model="gpt-5.5",
    ),
    RecordedAgent(reader=CopilotSessions, version="1.0.102"),
    RecordedAgent(reader=QwenSessions, version="0.24.4", failed=3),  # it does not run sed -i on what it has not read
    RecordedAgent(
        reader=GeminiSessions, version=None, failed=3, model="gemini-2.5-pro"
    ),  # its sub-agent ended in a way that it refuses
    RecordedAgent(reader=OpenCodeSessions, version="1.18.33", prompt=f'"{PROMPT}"'),  # its command line quotes words
    RecordedAgent(reader=DroidSessions, version=None, model="custom:Fake-0"),
    RecordedAgent(reader=ClineSessions, version="3.0.65", links=frozenset({"inferred"})),
    RecordedAgent(reader=GooseSessions, version=None, model=None),
)


def git(project: Path, *words: str) -> None:
    """Run git in the repository."""
    name = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    begun = {"GIT_AUTHOR_DATE": _BEGUN, "GIT_COMMITTER_DATE": _BEGUN}
    command = ["git", "-C", str(project), *name, *words]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **begun})


def restore(agent: RecordedAgent, folder: Path) -> tuple[Path, Path]:
    """Make the repository and the home directory as they were after the session; return home and repository."""
    project, home = folder / "shop", folder / "home"
    for path, text in BEFORE.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    for path, text in {**agent.after, "notes.txt": NOTES}.items():
        (project / path).write_text(text)
    kept = RECORDED / agent.reader.program
    for file in (one for one in kept.rglob("*") if one.is_file()):
        there = home / file.relative_to(kept)
        there.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8").replace("/PROJECT", str(project))
        if file.suffix == ".sql":
            with closing(sqlite3.connect(there.with_suffix(""))) as database:
                database.executescript(text)
        else:
            there.write_text(text, encoding="utf-8")
    return home, project
