"""A whole file that an agent wrote: was it new? Where the session does not say, git does."""

import os
import subprocess
from pathlib import Path

import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.line_blame import blame_at
from batonpass.adapters.session_files.readers.codex import CodexSessions
from batonpass.relay import Relay
from tests.unit.adapters.session_files.test_hostile_sessions import a_patch, a_thread

TEXT = "value = compute_everything()\n"  # what the patch writes


def commit(project: Path, at: str) -> None:
    environment = {**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    person = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    for words in (("init", "-q"), ("add", "."), (*person, "commit", "-q", "-m", "x")):
        subprocess.run(["git", "-C", str(project), *words], check=True, capture_output=True, env=environment)


@pytest.mark.parametrize(
    ("at", "is_told"),
    [
        pytest.param("2026-11-17T10:00:00Z", False, id="committed before"),
        pytest.param("2026-11-17T13:00:00Z", True, id="committed after"),
        pytest.param(None, True, id="never committed"),
    ],
)
def test_a_line_that_was_there_before_is_not_the_agents(tmp_path: Path, at: str | None, *, is_told: bool) -> None:
    """Codex writes over a file that is there, and calls it added."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "a.py").write_text(TEXT)
    if at is not None:
        commit(project, at)
    a_thread(tmp_path, project, *a_patch(project))
    with Relay.open("memory:") as relay:
        import_sessions(relay, project, CodexSessions(tmp_path), by="user:ana")
        (line,) = blame_at(relay, project / "a.py").lines

    assert is_told == (line.run is not None)
