"""What the doctor says about the hooks in Claude Code."""

from pathlib import Path

import pytest

from batonpass.adapters.coders import client
from batonpass.adapters.coders.client import HookInvocation
from batonpass.adapters.coders.hook_files import SettingsScope, settings_path
from batonpass.adapters.coders.hook_settings import hook_command, plan_install
from batonpass.cli.doctor import hook_checks
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.doctor.hook_checks import look_at_hooks
from batonpass.config import Settings, find_settings


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return the settings of a project with the home of a ledger."""
    project = tmp_path / "shop"
    (project / ".batonpass").mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(project)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return find_settings()


def install(scope: SettingsScope, *, enforce: bool = False) -> Path:
    path = settings_path(scope, Path.cwd())
    plan_install(path, hook_command(scope, Path.cwd(), enforce=enforce), enforce=enforce).apply()
    return path


def looked(found: Settings) -> dict[str, DoctorCheck]:
    return {check.name: check for check in look_at_hooks(found)}


def test_without_hooks_it_says_how_to_get_them(found: Settings) -> None:
    """That is no mistake."""
    checks = looked(found)

    assert (["hooks"], Level.OK) == ([*checks], checks["hooks"].level)
    assert "batonpass init claude-code" in checks["hooks"].found


def test_hooks_are_named_by_file_and_mode(found: Settings) -> None:
    """And the recorder need not run."""
    path = install(SettingsScope.SHARED, enforce=True)
    checks = looked(found)

    assert f"enforced, by {path}" == checks["hooks"].found
    assert (Level.OK, "not running: the next event starts it") == (checks["recorder"].level, checks["recorder"].found)


@pytest.mark.parametrize(
    ("text", "level", "says"),
    [("[claude-code", Level.BAD, "batonpass.toml: "), ("[claude-code]\n", Level.OK, "batonpass.toml")],
    ids=["broken", "whole"],
)
def test_rules_that_refuse_everything_are_bad(found: Settings, text: str, level: Level, says: str) -> None:
    """With rules that cannot be read, every call is refused: better to hear of it here."""
    install(SettingsScope.LOCAL, enforce=True)
    Path("batonpass.toml").write_text(text, encoding="utf-8")

    rules = looked(found)["rules"]

    assert (level, True) == (rules.level, says in rules.found)


def test_hooks_in_two_files_are_bad(found: Settings) -> None:
    """Everything would be recorded twice."""
    install(SettingsScope.LOCAL)
    install(SettingsScope.USER)

    assert Level.BAD == looked(found)["hooks"].level


@pytest.mark.parametrize(("answer", "level"), [("1.0/observe 42", Level.OK), (None, Level.WARN)])
def test_a_recorder_is_asked(
    found: Settings, monkeypatch: pytest.MonkeyPatch, answer: str | None, level: Level
) -> None:
    """By the same name under which hooks find it."""
    install(SettingsScope.LOCAL)
    call = HookInvocation(["--project", str(Path.cwd())], {})
    Path(call.home, f"{call.name}.sock").touch()
    monkeypatch.setattr(hook_checks, "ask_who", lambda *_: answer)
    check = looked(found)["recorder"]

    assert (level, answer is not None) == (check.level, check.found == "process 42 answers, 1.0/observe")


def test_events_that_reached_no_recorder_are_counted(found: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait to become gaps."""
    assert found.home is not None
    monkeypatch.chdir(found.home)
    client.spool(b"{}", "nobody was there")
    client.spool(b"{}", "nobody was there")
    check = looked(found)["spool"]

    assert (Level.WARN, "2 events reached no recorder") == (check.level, check.found)


def test_a_ledger_in_memory_has_no_hooks() -> None:
    """Nobody could find it."""
    assert {} == looked(find_settings("memory:"))
