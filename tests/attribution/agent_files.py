"""Session files as each coding agent keeps them, of a past that never happened. What is in them is read back.

A run of the past is a session. Each of its edits is a call in the form in which that agent keeps it: what was asked,
what came back, and whatever the program says of the file. What a shell did is in none of them.
"""

import difflib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.importer.receipt_words import change_of
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.session_files.readers.cline import ClineSessions
from batonpass.adapters.session_files.readers.codex import CodexSessions
from batonpass.adapters.session_files.readers.copilot import CopilotSessions
from batonpass.adapters.session_files.readers.cursor import CursorSessions
from batonpass.adapters.session_files.readers.cursor import slug_of as cursor_slug
from batonpass.adapters.session_files.readers.droid import DroidSessions
from batonpass.adapters.session_files.readers.gemini import GeminiSessions
from batonpass.adapters.session_files.readers.goose import GooseSessions
from batonpass.adapters.session_files.readers.opencode import OpenCodeSessions
from batonpass.adapters.session_files.readers.qwen import QwenSessions
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.attribution.changes.change import FileChange, apply_hunks
from batonpass.model.base.ids import CallId, RunId
from tests.attribution.generator import Past

_SIGNS: Final = {" ": "unchanged", "-": "removed", "+": "added"}


@dataclass(frozen=True, slots=True)
class Edit:
    """One call that changed a file, and the file before and after."""

    call: str
    at: datetime
    path: str
    before: str
    after: str

    @property
    def when(self) -> str:
        """Return the time as most agents write it."""
        return self.at.isoformat().replace("+00:00", "Z")

    @property
    def milliseconds(self) -> int:
        """Return the time as the others do."""
        return int(self.at.timestamp() * 1000)

    def diff(self, context: int) -> str:
        """Return a unified diff."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), n=context, lineterm="")
        return "".join(f"{line}\n" for line in list(lines)[2:])


Keeping = Callable[[Path, Path, str, Sequence[Edit]], None]


def keep_codex(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    meta = {"id": run, "cwd": str(project), "cli_version": "0.169.0"}
    lines: list[Mapping[str, Any]] = [{"timestamp": edits[0].when, "type": "session_meta", "payload": meta}]
    for edit in edits:
        asked = {"type": "custom_tool_call", "name": "apply_patch", "call_id": edit.call, "input": "*** Begin Patch"}
        change = {"type": "update", "unified_diff": edit.diff(1), "move_path": None}
        item = {"type": "FileChange", "id": edit.call, "status": "completed", "changes": {edit.path: change}}
        told = {"type": "custom_tool_call_output", "call_id": edit.call, "output": "Exit code: 0\n"}
        lines += [
            {"timestamp": edit.when, "type": "response_item", "payload": asked},
            {"timestamp": edit.when, "type": "event_msg", "payload": {"type": "item_completed", "item": item}},
            {"timestamp": edit.when, "type": "response_item", "payload": told},
        ]
    _write(home / "sessions" / "2026" / "01" / "05" / f"rollout-{run}.jsonl", lines)


def keep_copilot(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    start = {"copilotVersion": "1.0.102", "context": {"cwd": str(project)}}
    lines: list[Mapping[str, Any]] = [{"type": "session.start", "timestamp": edits[0].when, "data": start}]
    for edit in edits:
        name = edit.path.removeprefix("/")
        head = f"\ndiff --git a/{name} b/{name}\nindex 0000000..0000000 100644\n--- a/{name}\n+++ b/{name}\n"
        asked = {"toolCallId": edit.call, "toolName": "edit", "arguments": {"path": edit.path}}
        # It counts an empty line after the last one.
        shown = Edit(edit.call, edit.at, edit.path, f"{edit.before}\n", f"{edit.after}\n").diff(3)
        result = {"content": "updated", "detailedContent": f"{head}{shown}"}
        files = [{"path": edit.path, "kind": "edit"}]
        told = {"toolCallId": edit.call, "success": True, "fileEdits": files, "result": result}
        lines += [
            {"type": "tool.execution_start", "id": f"{edit.call}a", "timestamp": edit.when, "data": asked},
            {"type": "tool.execution_complete", "id": f"{edit.call}b", "timestamp": edit.when, "data": told},
        ]
    _write(home / "session-state" / run / "events.jsonl", lines)


def keep_qwen(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    lines: list[Mapping[str, Any]] = []
    for edit in edits:
        always = {"timestamp": edit.when, "cwd": str(project), "version": "0.24.4"}
        call = {"functionCall": {"id": edit.call, "name": "edit", "args": {"file_path": edit.path}}}
        told = {"callId": edit.call, "status": "success", "resultDisplay": _both_texts(edit)}
        lines += [
            {**always, "uuid": f"{edit.call}a", "type": "assistant", "message": {"parts": [call]}},
            {**always, "uuid": f"{edit.call}b", "type": "tool_result", "message": {}, "toolCallResult": told},
        ]
    _write(home / "projects" / "shop" / "chats" / f"{run}.jsonl", lines)


def keep_gemini(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    lines: list[Mapping[str, Any]] = [{"sessionId": run, "kind": "main"}]
    for edit in edits:
        call = {"id": edit.call, "name": "replace", "status": "success", "args": {"file_path": edit.path}}
        made = {**call, "timestamp": edit.when, "resultDisplay": _both_texts(edit)}
        lines += [{"id": f"{edit.call}a", "timestamp": edit.when, "type": "gemini", "content": "", "toolCalls": [made]}]
    folder = home / "tmp" / "shop"
    _write(folder / "chats" / f"session-{run}.jsonl", lines)
    (folder / ".project_root").write_text(str(project), encoding="utf-8")


def keep_opencode(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "opencode.db")) as database, database:
        database.executescript(
            "CREATE TABLE IF NOT EXISTS session (id, parent_id, directory, version, time_created, time_updated);"
            "CREATE TABLE IF NOT EXISTS message (id, data);"
            "CREATE TABLE IF NOT EXISTS part (id, message_id, session_id, time_created, data);"
        )
        row = (run, None, str(project), "1.18.33", edits[0].milliseconds, edits[-1].milliseconds)
        database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
        database.execute("INSERT INTO message VALUES (?, ?)", (run, '{"role": "assistant"}'))
        for edit in edits:
            told = {"diff": f"Index: {edit.path}\n{'=' * 67}\n--- {edit.path}\n+++ {edit.path}\n{edit.diff(4)}"}
            state = {"status": "completed", "input": {"filePath": edit.path}, "output": "ok", "metadata": told}
            part = {"type": "tool", "tool": "edit", "callID": edit.call, "state": state}
            values = (edit.call, run, run, edit.milliseconds, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", values)


def keep_droid(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    lines: list[Mapping[str, Any]] = [{"type": "session_start", "id": run, "cwd": str(project)}]
    for edit in edits:
        asked = {"type": "tool_use", "id": edit.call, "name": "Edit", "input": {"file_path": edit.path}}
        result = {"success": True, "file_path": edit.path, "diffLines": list(_numbered(edit))}
        told = {"type": "tool_result", "tool_use_id": edit.call, "is_error": False, "content": json.dumps(result)}
        for role, block, end in (("assistant", asked, "a"), ("user", told, "b")):
            message = {"role": role, "content": [block]}
            lines.append({"type": "message", "id": f"{edit.call}{end}", "timestamp": edit.when, "message": message})
    _write(home / "sessions" / "shop" / f"{run}.jsonl", lines)


def keep_cline(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    messages = []
    for edit in edits:
        asked = {"type": "tool_use", "id": edit.call, "name": "editor", "input": {"path": edit.path, "new_text": ""}}
        result = {"result": f"Edited {edit.path}\n```diff\n{_one_block(edit)}\n```", "success": True}
        told = {"type": "tool_result", "tool_use_id": edit.call, "content": json.dumps(result)}
        messages += [
            {"id": f"{edit.call}a", "role": "assistant", "content": [asked], "ts": edit.milliseconds},
            {"id": f"{edit.call}b", "role": "user", "content": [told], "ts": edit.milliseconds},
        ]
    folder = home / "data" / "sessions" / run
    folder.mkdir(parents=True)
    (folder / f"{run}.json").write_text(json.dumps({"cwd": str(project)}), encoding="utf-8")
    (folder / f"{run}.messages.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")


def keep_goose(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "sessions.db")) as database, database:
        database.executescript(
            "CREATE TABLE IF NOT EXISTS sessions (id, session_type, working_dir, created_at, updated_at);"
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, message_id, session_id, role, content_json,"
            " created_timestamp);"
        )
        times = (edits[0].at.strftime("%F %T"), edits[-1].at.strftime("%F %T"))
        database.execute("INSERT INTO sessions VALUES (?, 'user', ?, ?, ?)", (run, str(project), *times))
        for edit in edits:
            if edit.before:
                # It replaces a text that is there once, and does not say where that was.
                old, new = _around(edit)
                tool, given, said = "edit", {"path": edit.path, "before": old, "after": new}, "Edited"
            else:
                tool, given, said = "write", {"path": edit.path, "content": edit.after}, "Created"
            call = {"status": "success", "value": {"name": tool, "arguments": given}}
            text = [{"type": "text", "text": f"{said} {edit.path} (1 lines)"}]
            result = {"status": "success", "value": {"content": text, "isError": False}}
            asked = {"type": "toolRequest", "id": edit.call, "toolCall": call}
            told = {"type": "toolResponse", "id": edit.call, "toolResult": result}
            for role, part in (("assistant", asked), ("user", told)):
                values = (f"{edit.call}-{role}", run, role, json.dumps([part]), int(edit.at.timestamp()))
                database.execute(
                    "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp)"
                    " VALUES (?, ?, ?, ?, ?)",
                    values,
                )


def keep_cursor(home: Path, project: Path, run: str, edits: Sequence[Edit]) -> None:
    lines = []
    for edit in edits:
        given = {"file_path": edit.path, "contents": edit.after}
        block = {"type": "tool_use", "name": "Write", "id": edit.call, "input": given}
        lines.append({"role": "assistant", "message": {"content": [block]}})
    folder = home / "projects" / cursor_slug(str(project)) / "agent-transcripts"
    _write(folder / f"{run}.jsonl", lines)


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """One agent: how its files are written here, and who reads them."""

    name: str
    keep: Keeping
    open: Callable[[Path], SessionReader]
    share: float = 0.97  # of the lines that its files show being written, found at least
    tells_results: bool = True  # a call without a result may not have been made, and counts for nothing

    def __str__(self) -> str:
        return self.name


AGENTS: Final = (
    AgentFiles("codex", keep_codex, CodexSessions, share=0.93),  # one line of context on either side
    AgentFiles("copilot", keep_copilot, CopilotSessions, share=0.93),
    AgentFiles("qwen", keep_qwen, QwenSessions),
    AgentFiles("gemini", keep_gemini, GeminiSessions),
    AgentFiles("opencode", keep_opencode, lambda home: OpenCodeSessions(home / "opencode.db")),
    AgentFiles("droid", keep_droid, DroidSessions),
    AgentFiles("cline", keep_cline, ClineSessions, share=0.75),  # no context, if it did not read the file
    AgentFiles("goose", keep_goose, lambda home: GooseSessions(home / "sessions.db"), share=0.0),  # no places
    AgentFiles("cursor", keep_cursor, CursorSessions, share=0.0, tells_results=False),
)


def read_back(agent: AgentFiles, past: Past, folder: Path) -> list[FileChange]:
    """Write the past as an agent's sessions, and return the changes that our reader finds in them."""
    project, home = folder / "shop", folder / "home"
    project.mkdir(parents=True)
    runs: dict[str, list[Edit]] = {}
    for change in past.changes:
        if change.call not in past.bash and change.hunks and change.renamed_from is None:
            runs.setdefault(change.run, []).append(_edit(past, change, project))
    for run, edits in runs.items():
        agent.keep(home, project, run, edits)
    # A move is a command, and each of them tells of it in the same way.
    moved = [one for one in past.transcript() if one.renamed_from is not None]
    reader = agent.open(home)
    found = [
        change_of(patch, CallId(call.use.tool_use_id), RunId(files.session), call.result.at)
        for files in reader.find(project)
        for call in read_conversation(reader, files, project).main.calls
        for patch in call.changes
        if call.result is not None
    ]
    return sorted([*found, *moved], key=lambda change: (change.at, int(change.call.removeprefix("call_"))))


def _edit(past: Past, change: FileChange, project: Path) -> Edit:
    before = past.befores[change.call]
    after = apply_hunks(change.hunks or (), before)
    texts = ["".join(f"{line}\n" for line in lines) for lines in (before, after)]
    return Edit(change.call, change.at, str(project / change.path), *texts)


def _both_texts(edit: Edit) -> dict[str, str]:
    return {"filePath": edit.path, "originalContent": edit.before, "newContent": edit.after, "fileDiff": edit.diff(3)}


def _numbered(edit: Edit) -> Iterator[dict[str, Any]]:
    old = new = 0
    for line in edit.diff(3).splitlines():
        if line.startswith("@@"):
            numbers = line.replace(",", " ").replace("@@", "").split()
            (old, new) = (int(next(one for one in numbers if one.startswith(sign))[1:]) for sign in "-+")
            # A side without lines names the line before it.
            old += "-" in line and f"-{old},0" in line
            new += f"+{new},0" in line
            continue
        sign = line[0]
        number = {"old": None if sign == "+" else old, "new": None if sign == "-" else new}
        yield {"type": _SIGNS[sign], "content": line[1:], "lineNumber": number}
        old += sign != "+"
        new += sign != "-"


def _one_block(edit: Edit) -> str:
    """Return all from the first line that differs to the last, numbered."""
    old, new, start, end = _difference(edit)
    shown = [f"-{at + 1}: {old[at]}" for at in range(start, len(old) - end)]
    return "\n".join([*shown, *(f"+{at + 1}: {new[at]}" for at in range(start, len(new) - end))])


def _difference(edit: Edit) -> tuple[list[str], list[str], int, int]:
    """Return both texts in lines, and how many lines at their beginning and at their end are the same."""
    old, new = edit.before.splitlines(), edit.after.splitlines()
    start = end = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return old, new, start, end


def _around(edit: Edit) -> tuple[str, str]:
    """Return what differs, from the first line to the last, with the line above."""
    old, new, start, end = _difference(edit)
    start = max(0, start - 1)
    return "\n".join(old[start : len(old) - end]), "\n".join(new[start : len(new) - end])


def _write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
