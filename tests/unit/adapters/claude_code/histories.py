"""Transcripts written by hand: only what a test is about has to be said."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from batonpass.adapters.claude_code.transcripts.transcript_places import slug_of
from batonpass.adapters.session_files.session_place import SessionFiles

SESSION = "11111111-2222-4333-8444-555555555555"
BEGUN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@dataclass(slots=True)
class History:
    """What Claude Code keeps about one project."""

    root: Path
    project: Path
    lines: int = field(default=0)

    @property
    def config(self) -> Path:
        """Return where it is kept."""
        return self.root / ".claude"

    @property
    def folder(self) -> Path:
        """Return the folder of the project's own sessions."""
        return self.config / "projects" / slug_of(str(self.project))

    def main(self, session: str = SESSION) -> Path:
        """Return the file of a session's main conversation."""
        return self.folder / f"{session}.jsonl"

    def agent(self, agent: str, session: str = SESSION) -> Path:
        """Return the file of a sub-agent."""
        return self.folder / session / "subagents" / f"agent-{agent}.jsonl"

    def transcript(self, session: str = SESSION) -> SessionFiles:
        """Return a session's files."""
        agents = {path.stem.removeprefix("agent-"): path for path in self.agent("*").parent.glob("agent-*.jsonl")}
        return SessionFiles(session=session, main=self.main(session), agents=agents)

    def add(self, path: Path, kind: str, message: object = None, **fields: object) -> str:
        """Write a line and return its id."""
        self.lines += 1
        line = {
            "type": kind,
            "uuid": f"line-{self.lines}",
            "timestamp": (BEGUN + timedelta(seconds=self.lines)).isoformat().replace("+00:00", "Z"),
            "sessionId": SESSION,
            "cwd": str(self.project),
            "version": "2.0.1",
            "gitBranch": "main",
            "isSidechain": False,
            **fields,
        }
        if message is not None:
            line["message"] = message
        self.write(path, json.dumps(line).encode() + b"\n")
        return str(line["uuid"])

    def write(self, path: Path, data: bytes) -> None:
        """Write bytes at the end of a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)

    def says(self, text: str, path: Path | None = None, **fields: object) -> str:
        """Let the human say something, or whoever tells a sub-agent what to do."""
        return self.add(path or self.main(), "user", {"role": "user", "content": text}, **fields)

    def answers(self, text: str, path: Path | None = None, **fields: object) -> str:
        """Let the model say something."""
        content = [{"type": "text", "text": text}]
        return self.add(path or self.main(), "assistant", {"role": "assistant", "content": content}, **fields)

    def uses(self, call: str, tool: str, given: dict[str, Any], path: Path | None = None, **fields: object) -> str:
        """Let the model call a tool."""
        content = [{"type": "tool_use", "id": call, "name": tool, "input": given}]
        return self.add(path or self.main(), "assistant", {"role": "assistant", "content": content}, **fields)

    def returns(self, call: str, text: object, path: Path | None = None, *, ok: bool = True, **fields: object) -> str:
        """Let a call return."""
        content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": not ok}]
        return self.add(path or self.main(), "user", {"role": "user", "content": content}, **fields)
