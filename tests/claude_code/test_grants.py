"""The real program under grants: what the file does not grant, its model reads as a refusal, and it is not done."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claude_code.api import Script, ScriptedApi, says, uses
from tests.claude_code.cli import ClaudeCode
from tests.integration.cli.hooking import Hooked, shop_with_editor
from tests.integration.cli.shell import batonpass_in

pytestmark = [pytest.mark.xdist_group("claude-code"), pytest.mark.slow]

FIX = "Fix the rounding"
HELP = "Look after the notes"
TABLES = '[grant.claude-code]\nmay = ["read:**", "run:echo"]\nmay_delegate = ["read:**", "write:notes.md"]\n'


def script(project: Path) -> Script:
    """Return what the model answers."""
    source, settings = str(project / "a.py"), str(project / ".claude" / "settings.json")
    editor = {"description": "edit", "subagent_type": "editor", "run_in_background": False}
    return {
        FIX: [
            [uses("hooks", "Write", file_path=settings, content='{"hooks": {}}')],
            [uses("look", "Read", file_path=source)],
            [uses("edit", "Edit", file_path=source, old_string="one", new_string="two")],
            [uses("echo", "Bash", command="echo hello", description="say")],
            [uses("more", "Bash", command="echo hello > a.py", description="say")],
            [uses("help", "Agent", prompt=HELP, **editor)],
            [says("Done.")],
        ],
        HELP: [
            [uses("other", "Write", file_path=str(project / "other.md"), content="x")],
            [uses("notes", "Write", file_path=str(project / "notes.md"), content="x")],
            [says("Looked after.")],
        ],
    }


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    """Return a project with a file, a sub-agent and grants; its recorder is ended afterwards."""
    with shop_with_editor(tmp_path / "shop", tools="Read, Write") as hooked:
        (hooked.folder / "batonpass.toml").write_text(TABLES, encoding="utf-8")
        yield hooked


def results_in(api: ScriptedApi) -> dict[str, str]:
    """Return what the model was told about each call."""
    return {
        block["tool_use_id"].removeprefix("toolu_"): json.dumps(block["content"])
        for asked in api.asked
        for message in asked.body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block.get("type") == "tool_result"
    }


def test_a_session_does_what_it_was_granted(hooked: Hooked, tmp_path: Path) -> None:
    """It reads and says; it changes neither its settings nor a file; its sub-agent writes the one file it was given."""
    home = tmp_path / "home"
    home.mkdir()
    done = batonpass_in(hooked.folder, "init", "claude-code", "--enforce", environment={"HOME": str(home)})
    assert 0 == done.returncode, done.stderr
    with ScriptedApi(script(hooked.folder)) as api:
        ClaudeCode(home=home, project=hooked.folder, api=api).say(FIX)
    told = results_in(api)

    assert "would touch the settings that decide about calls" in told["hooks"]
    assert "claude-code may read:** | run:echo, tried write:a.py" in told["edit"]
    assert "tried call:Bash" in told["more"]
    assert "editor may write:notes.md | read:**, tried write:other.md; nobody above holds it" in told["other"]
    assert "one" in told["look"]
    assert "hello" in told["echo"]
    assert ["protected", "grant", "grant", "grant"] == hooked.denied()
    assert (False, "one\n", False, True) == (
        (hooked.folder / ".claude" / "settings.json").exists(),
        (hooked.folder / "a.py").read_text(encoding="utf-8"),
        (hooked.folder / "other.md").exists(),
        (hooked.folder / "notes.md").exists(),
    )
    assert (0, 0) == (hooked.gaps(), hooked.spooled())
