"""Cursor's transcripts, as documented: calls without results prove nothing, and are said to be possible."""

import json
from pathlib import Path

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.line_blame import blame_at
from batonpass.adapters.session_files.readers.cursor import CursorSessions, slug_of
from batonpass.relay import Relay


def test_a_call_without_a_result_may_have_written_a_line(tmp_path: Path) -> None:
    """It names the file and the words, and nobody knows whether it was made."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "a.py").write_text("value = compute_everything()\n")
    path = tmp_path / "projects" / slug_of(str(project)) / "agent-transcripts" / "s1" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    asked = {"file_path": str(project / "a.py"), "contents": "value = compute_everything()\n"}
    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "Compute it"}]}},
        {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Write", "input": asked}]}},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with Relay.open("memory:") as relay:
        counts = import_sessions(relay, project, CursorSessions(tmp_path), by="user:ana").counts
        (line,) = blame_at(relay, project / "a.py").lines
        relay.verify()

    assert (1, 1, 0) == (counts.prompts, counts.calls, counts.changes)
    assert ("candidates", True, None) == (line.known, line.or_nobody, line.run)


def test_other_projects_are_not_read(tmp_path: Path) -> None:
    """A folder is named after its directory, without what separates names."""
    assert "home-ana-my-shop" == slug_of("/home/ana/my.shop")
    assert [] == list(CursorSessions(tmp_path).find(tmp_path))
