"""The real program with the hooks that `init` writes: observed, all is recorded; enforced, the model is told no."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batonpass.adapters.coders import client
from tests.claude_code.api import Script, ScriptedApi, says, uses
from tests.claude_code.cli import ClaudeCode
from tests.integration.cli.hooking import Hooked, shop_with_editor
from tests.integration.cli.shell import batonpass_in

pytestmark = pytest.mark.slow

FIX = "Fix the rounding"
HELP = "Look after the notes"
RULES = """
[[rules]]
name = "no-curl"
on = "call"
gate = "deny"
agent = "editor"
tool = "Bash(curl *)"

[[rules]]
name = "editor-only"
on = "call"
gate = "deny"
agent = "editor"
except = ["Edit(notes.md)", "Read", "Bash(echo *)"]
"""

Play = Callable[..., ScriptedApi]


def script(project: Path) -> Script:
    """Return what the model answers."""
    source = str(project / "a.py")
    editor = {"description": "edit", "subagent_type": "editor", "run_in_background": False}
    return {
        FIX: [
            [uses("ledger", "Write", file_path=str(project / ".batonpass" / "x"), content="x")],
            [uses("ours", "Bash", command="true && batonpass --version", description="ours")],
            [uses("hooks", "Bash", command="rm -f .claude/settings.local.json", description="hooks")],
            [uses("look", "Read", file_path=source)],
            [uses("edit", "Edit", file_path=source, old_string="one", new_string="two")],
            [uses("fails", "Bash", command="exit 3", description="fails")],
            [uses("help", "Agent", prompt=HELP, **editor)],
            [says("Done.")],
        ],
        HELP: [
            [uses("denied", "Bash", command="curl example.org", description="denied")],
            [uses("other", "Write", file_path=str(project / "other.md"), content="x")],
            [uses("notes", "Write", file_path=str(project / "notes.md"), content="x")],
            [says("Looked after.")],
        ],
    }


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    """Return a project with a file and a sub-agent; its recorder is ended afterwards."""
    with shop_with_editor(tmp_path / "shop", tools="Read, Write, Edit, Bash") as hooked:
        yield hooked


@pytest.fixture
def play(hooked: Hooked, tmp_path: Path) -> Play:
    """Return what installs the hooks as a person does, and lets the program work once."""

    def start(*words: str) -> ScriptedApi:
        home = tmp_path / "home"
        home.mkdir()
        done = batonpass_in(hooked.folder, "init", "claude-code", *words, environment={"HOME": str(home)})
        assert 0 == done.returncode, done.stderr
        with ScriptedApi(script(hooked.folder)) as api:
            ClaudeCode(home=home, project=hooked.folder, api=api).say(FIX)
        return api

    return start


def results_in(api: ScriptedApi) -> dict[str, str]:
    """Return what the model was told about each call."""
    found = {}
    for asked in api.asked:
        for message in asked.body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    found[block["tool_use_id"].removeprefix("toolu_")] = json.dumps(block["content"])
    return found


def kinds(hooked: Hooked) -> dict[str, int]:
    counts: dict[str, int] = {}
    for body in hooked.bodies():
        counts[type(body).__name__] = counts.get(type(body).__name__, 0) + 1
    return counts


def test_observed_everything_is_recorded_and_only_the_ledger_is_kept_from_harm(hooked: Hooked, play: Play) -> None:
    """Eight calls have their outcomes; one that would write into the ledger is refused, and recorded as that."""
    api = play()
    counted = kinds(hooked)

    assert {"ledger", "ours", "hooks", "look", "edit", "fails", "help", "denied", "other", "notes"} == {
        *results_in(api)
    }
    assert "two\n" == (hooked.folder / "a.py").read_text(encoding="utf-8")
    assert (8, 8) == (counted["ToolRequested"], counted["ToolCompleted"] + counted["ToolFailed"])
    assert {"RunStarted", "HandoffInitiated", "HandoffAccepted", "HandoffCompleted", "RunClosed"} <= {*counted}
    assert (1, 0, 0) == (len(hooked.denied()), hooked.gaps(), hooked.spooled())


def test_enforced_the_model_is_told_what_it_may_not_do(hooked: Hooked, play: Play) -> None:
    """Our sentences reach it; what is allowed is done; each refusal is a receipt with its rule."""
    (hooked.folder / "batonpass.toml").write_text(RULES, encoding="utf-8")
    told = results_in(play("--enforce"))

    assert "Write would touch the ledger or its keys" in told["ledger"]
    assert "Bash would run or change `batonpass`" in told["ours"]
    assert "Bash would touch the settings that decide about calls" in told["hooks"]
    assert "editor calls Bash; rule no-curl says deny to Bash(curl *)" in told["denied"]
    assert "rule editor-only says deny, except Edit(notes.md), Read, Bash(echo *)" in told["other"]
    assert not (hooked.home / "x").exists()
    assert not (hooked.folder / "other.md").exists()
    assert "two\n" == (hooked.folder / "a.py").read_text(encoding="utf-8")
    assert (hooked.folder / "notes.md").exists()
    assert [
        "protected",
        "protected",
        "protected",
        "no-curl",
        "editor-only",
    ] == hooked.denied()
    assert {"HandoffInitiated", "HandoffAccepted", "HandoffCompleted"} <= {*kinds(hooked)}
    assert (0, 0) == (hooked.gaps(), hooked.spooled())


def test_enforced_nothing_runs_without_a_recorder(hooked: Hooked, play: Play) -> None:
    """The recorder can never start, so every call is refused, and the model knows whom to ask."""
    hooked.home.mkdir(mode=0o700)
    (hooked.home / client.LOG).mkdir()
    told = results_in(play("--enforce"))

    assert "unrecorded calls are not allowed here" in told["look"]
    assert "stop and ask the user to run `batonpass doctor`" in told["look"]
    assert "one\n" == (hooked.folder / "a.py").read_text(encoding="utf-8")
    assert hooked.spooled() > 0


def test_observed_nothing_is_stopped_without_a_recorder(hooked: Hooked, play: Play) -> None:
    """All is done as if we were not there, and what was missed is kept."""
    hooked.home.mkdir(mode=0o700)
    (hooked.home / client.LOG).mkdir()
    play()

    assert "two\n" == (hooked.folder / "a.py").read_text(encoding="utf-8")
    assert hooked.spooled() > 0


def test_an_event_that_it_does_not_know_is_ignored(hooked: Hooked, play: Play) -> None:
    """A version that lacks one of our events passes it over, and runs the others."""
    path = hooked.folder / ".claude" / "settings.local.json"
    path.write_text(
        '{"hooks": {"NoSuchEvent": [{"hooks": [{"type": "command", "command": "false"}]}]}}', encoding="utf-8"
    )
    play("--enforce")

    assert "two\n" == (hooked.folder / "a.py").read_text(encoding="utf-8")
    assert 3 == hooked.denied().count("protected")
