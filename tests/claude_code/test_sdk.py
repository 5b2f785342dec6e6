"""The Claude Agent SDK with our hooks: one line in a program, and its sessions are recorded like any other."""

import json
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass.relay import Relay
from tests.claude_code import sdk_program
from tests.claude_code.api import Script, ScriptedApi, says, uses
from tests.claude_code.cli import PATIENCE, ROOT, ClaudeCode
from tests.claude_code.story import lay_out
from tests.unit.adapters.coders.sessions import told

pytestmark = pytest.mark.slow

ASK: Final = "Write it down, and let it be checked"
CHECK: Final = "Check what was written"


def script(project: Path) -> Script:
    return {
        ASK: [
            [uses("write", "Write", file_path=str(project / "notes.md"), content="one\n")],
            [uses("check", "Agent", prompt=CHECK, subagent_type="editor", description="check")],
            [says("Written and checked.")],
            [says("Written and checked.")],
        ],
        CHECK: [
            [uses("sed", "Bash", command="sed -i s/one/two/ notes.md; ls .batonpass", description="sed")],
            [says("It is checked.")],
        ],
    }


def play(folder: Path, mode: str) -> list[dict[str, Any]]:
    """Let the program run where the SDK is, and return what was recorded."""
    (folder / "home").mkdir()
    project = folder / "shop"
    lay_out(project)
    with ScriptedApi(script(project)) as api:
        claude = ClaudeCode(home=folder / "home", project=project, api=api)
        given = {
            "path": [str(ROOT / "src"), sysconfig.get_path("purelib")],
            "project": str(project),
            "enforce": mode == "enforced",
            "env": {**claude.surroundings(), "IS_SANDBOX": "1"},
            "prompt": ASK,
        }
        done = subprocess.run(
            [ROOT / ".venv" / "claude" / "bin" / "python", sdk_program.__file__, json.dumps(given)],
            env=claude.surroundings(),
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
    assert 0 == done.returncode, done.stderr
    with Relay.open(f"sqlite:///{project}/.batonpass/ledger.db", create=False) as relay:
        relay.verify()
        return told(relay)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Return what was recorded: while nobody was held to anything, and under rules."""
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in ("observed", "enforced")}
    with ThreadPoolExecutor() as pool:
        playing = {mode: pool.submit(play, folder, mode) for mode, folder in folders.items()}
        yield {mode: story.result() for mode, story in playing.items()}


def test_a_program_is_recorded(both: dict[str, list[dict[str, Any]]]) -> None:
    """The same receipts as from the hook command; the end of the program is the end of the session."""
    assert {
        "run-1": [
            "run.started",
            "tool.requested toolu_write",
            "tool.completed toolu_write",
            "handoff.initiated toolu_check",
            "run.recorded",
            "run.closed",
        ],
        "run-2": ["handoff.accepted", "tool.requested toolu_sed", "tool.completed toolu_sed", "handoff.completed"],
    } == _by_stream(both["observed"])
    assert ["user:ana", ASK] == [both["observed"][0]["body"]["principal"], both["observed"][0]["content"]["intent"]]


def test_what_a_program_changes_is_recorded(both: dict[str, list[dict[str, Any]]]) -> None:
    """By edits, and by commands of sub-agents."""
    changes = [
        (one["content"]["source"]["key"], content["path"], content["hunks"])
        for one in both["observed"]
        for name, content in one["content"].items()
        if name.startswith("change.")
    ]

    assert [
        ("toolu_write", "notes.md", [{"old": 0, "removed": [], "new": 1, "added": ["one"]}]),
        ("toolu_sed", "notes.md", [{"old": 1, "removed": ["one"], "new": 1, "added": ["two"]}]),
    ] == changes


def test_under_rules_a_call_is_refused_whatever_the_permissions(both: dict[str, list[dict[str, Any]]]) -> None:
    """Also where the program asks nobody."""
    assert ["handoff.accepted", "tool.denied toolu_sed", "handoff.completed"] == _by_stream(both["enforced"])["run-2"]
    assert {"enforced"} == {one["mode"] for one in both["enforced"]}


def _by_stream(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    streams: dict[str, list[str]] = {}
    for one in found:
        key = one["content"].get("source", {}).get("key", "")
        line = f"{one['kind']} {key}" if key.startswith("toolu_") else one["kind"]
        if line not in streams.setdefault(one["stream"], []) or line != "run.recorded":
            streams[one["stream"]].append(line)
    return streams
