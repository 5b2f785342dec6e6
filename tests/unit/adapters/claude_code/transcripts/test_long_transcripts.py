"""A history of any length is read line by line: what is in memory is a few lines, not the file."""

import json
import tracemalloc
from pathlib import Path

from batonpass.adapters.claude_code.transcripts.transcript_reader import read_session
from batonpass.adapters.session_files.session_place import SessionFiles, mentioning

LINES = 400
LONG = "x" * 100_000  # what a tool returned
AT_MOST = 4 * 1024 * 1024  # of forty million characters


def a_long_history(folder: Path) -> SessionFiles:
    """Return a session of forty million characters."""
    path = folder / "session.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(LINES):
            result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": LONG}
            line = {"type": "user", "uuid": f"u{number}", "timestamp": "2026-11-15T23:14:05Z", "cwd": "/shop"}
            file.write(json.dumps({**line, "message": {"role": "user", "content": [result]}}) + "\n")
    return SessionFiles(session="session", main=path, agents={})


def test_a_long_history_is_streamed(tmp_path: Path) -> None:
    """Reading every record of it takes the memory of some lines; so does looking for a name that is not there."""
    history = a_long_history(tmp_path)
    tracemalloc.start()
    try:
        records = sum(1 for _ in read_session(history, tmp_path))
        found = mentioning(["src/invoice.py"])(history)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (True, False) == (records >= LINES, found)
    assert peak < AT_MOST
