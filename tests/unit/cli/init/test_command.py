"""`batonpass init claude-code`: what it shows, what it changes, what it refuses."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.relay import Relay


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project, and stand in it; the user's own settings are empty too."""
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return project


def init(*words: str) -> Result:
    return CliRunner().invoke(cli, ["init", "claude-code", *words], prog_name="batonpass")


def hooks_in(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["hooks"]
    return found


def test_the_first_time_makes_a_ledger_and_shows_the_difference(shop: Path) -> None:
    """Nothing has to be set up; what was written is on stdout."""
    done = init()
    path = shop / ".claude" / "settings.local.json"

    assert (0, None) == (done.exit_code, done.exception)
    assert ["--- /dev/null", f"+++ {path}"] == done.stdout.splitlines()[:2]
    assert f"created a ledger in {shop / '.batonpass'}, which git ignores" in done.stderr
    assert (
        "everything is recorded, and only calls that would change the ledger or read its keys are refused; "
        "--undo reverts this" in done.stderr
    )
    assert "*\n" == (shop / ".batonpass" / ".gitignore").read_text(encoding="ascii")
    with Relay.open(f"sqlite:///{shop}/.batonpass/ledger.db", create=False) as relay:
        assert relay.store.founded()


def test_the_command_names_this_machine_and_this_project(shop: Path) -> None:
    """The file is this person's alone."""
    init()
    words = shlex.split(hooks_in(shop / ".claude" / "settings.local.json")["Stop"][0]["hooks"][0]["command"])

    assert (["-I", "-S"], ["--project", str(shop)]) == (words[1:3], words[4:])
    assert Path(words[3]).is_file()


def test_the_second_time_changes_nothing(shop: Path) -> None:
    """And says so."""
    init()
    done = init()

    assert (0, "") == (done.exit_code, done.stdout)
    assert f"nothing to do: our hooks are already in {shop}/.claude/settings.local.json\n" == done.stderr


def test_a_dry_run_leaves_no_trace(shop: Path) -> None:
    """Not even a ledger."""
    done = init("--dry-run")

    assert (0, True, []) == (done.exit_code, "PreToolUse" in done.stdout, [*shop.iterdir()])


def test_enforcing_is_switched_on_and_off(shop: Path) -> None:
    """With the difference shown each time."""
    path = shop / ".claude" / "settings.local.json"
    init("--enforce")
    on = hooks_in(path)["PreToolUse"][0]["hooks"][0]
    done = init()
    off = hooks_in(path)["PreToolUse"][0]["hooks"][0]

    assert ("block", True) == (on["onFailure"], on["command"].endswith(" --enforce"))
    assert (False, False) == ("onFailure" in off, "--enforce" in off["command"])
    assert '-            "onFailure": "block"' in done.stdout


def test_undoing_takes_away_what_we_made(shop: Path) -> None:
    """The settings file too, if it was ours; the ledger stays."""
    init()
    done = init("--undo")

    assert (0, False) == (done.exit_code, (shop / ".claude" / "settings.local.json").exists())
    assert "removed our hooks from" in done.stderr
    assert (shop / ".batonpass" / "ledger.db").exists()


def test_a_file_that_was_there_before_stays(shop: Path) -> None:
    """As it was."""
    path = shop / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{}\n", encoding="utf-8")
    init()
    init("--undo")

    assert "{}\n" == path.read_text(encoding="utf-8")


def test_undoing_nothing_says_no(shop: Path) -> None:
    """Nothing of ours is there."""
    done = init("--undo")

    assert (1, "there are no hooks of ours in ") == (done.exit_code, done.stderr[:30])
    assert [] == [*shop.iterdir()]


def test_shared_settings_have_no_path_in_them(shop: Path) -> None:
    """Whoever has it on the PATH records."""
    init("--shared", "--enforce")
    done = init("--shared", "--enforce")

    assert "batonpass-hook --enforce" == hooks_in(shop / ".claude" / "settings.json")["Stop"][0]["hooks"][0]["command"]
    assert "without batonpass-hook on the PATH, Claude Code can make no call here" in done.stderr


def test_the_users_settings_need_no_ledger(shop: Path, tmp_path: Path) -> None:
    """They hold wherever there is one."""
    done = init("--user")

    assert (0, []) == (done.exit_code, [*shop.iterdir()])
    assert "--project" not in hooks_in(tmp_path / "config" / "settings.json")["Stop"][0]["hooks"][0]["command"]


@pytest.mark.parametrize(("first", "second"), [(["--user"], []), (["--shared"], []), ([], ["--shared"])])
def test_hooks_in_two_files_are_refused(shop: Path, first: list[str], second: list[str]) -> None:
    """Claude Code would run both."""
    init(*first)
    before = sorted(shop.rglob("*.json"))
    done = init(*second)

    assert (2, before) == (done.exit_code, sorted(shop.rglob("*.json")))
    assert f"`batonpass init claude-code {''.join(f'{word} ' for word in first)}--undo` first" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["--shared", "--user"], ["--user", "--enforce"], ["--ledger", "memory:"], ["--ledger", "postgresql://a:b@c/d"]],
)
@pytest.mark.usefixtures("shop")
def test_what_cannot_work_is_wrong_usage(words: list[str]) -> None:
    """Before anything is changed."""
    done = init(*words)

    assert (2, "") == (done.exit_code, done.stdout)


def test_damaged_settings_are_not_touched(shop: Path) -> None:
    """One sentence, and nothing is made."""
    path = shop / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{", encoding="utf-8")
    done = init()

    assert (2, "{", False) == (done.exit_code, path.read_text(encoding="utf-8"), (shop / ".batonpass").exists())
    assert "is not valid JSON" in done.stderr


def test_another_ledger_is_told_to_the_hook(shop: Path) -> None:
    """As an absolute path: hooks run anywhere."""
    init("--ledger", "all.db")
    command = hooks_in(shop / ".claude" / "settings.local.json")["Stop"][0]["hooks"][0]["command"]

    assert ["--ledger", f"{shop}/all.db"] == shlex.split(command)[6:]
    assert (shop / "all.db").exists()
