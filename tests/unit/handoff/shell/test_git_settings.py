"""An enforced run changes no setting of git that runs a program, in whichever file: each spelling is tried with git."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from batonpass.handoff.files.protected_paths import Protected
from batonpass.handoff.shell.command_reach import find_in_shell

EVIL: Final = "/somewhere/evil"
# Each of these makes git run programs of another directory from then on, in this repository or in every one.
SETTING: Final = [
    f"git config core.hooksPath {EVIL}",
    f"git config --local core.hooksPath {EVIL}",
    f"git config --global core.hooksPath {EVIL}",
    f"git config --glob core.hooksPath {EVIL}",
    f"git config core.hooksPath {EVIL} --global",
    f"git config --global Core.HOOKSPATH {EVIL}",
    f"git config --global --add core.hooksPath {EVIL}",
    f"git config --global --replace-all core.hooksPath {EVIL}",
    f"git config --global --type path core.hooksPath {EVIL}",
    f"git -C . config --global core.hooksPath {EVIL}",
    f"env git config --global core.hooksPath {EVIL}",
    f"bash -c 'git config --global core.hooksPath {EVIL}'",
    f"git config --file ~/.gitconfig core.hooksPath {EVIL}",
    f"git config --file=$HOME/.gitconfig core.hooksPath {EVIL}",
    f"git config -f ~/.gitconfig core.hooksPath {EVIL}",
    f"git config -f.git/config core.hooksPath {EVIL}",
    f"git config -f ~/.config/git/config core.hooksPath {EVIL}",
    f"printf '[core]\\nhooksPath = {EVIL}\\n' >> ~/.gitconfig",
    f"printf '[core]\\nhooksPath = {EVIL}\\n' | tee -a $HOME/.gitconfig",
    f"printf '[core]\\nhooksPath = {EVIL}\\n' > x; cp x ~/.gitconfig",
]
HARMLESS: Final = [
    "git config --global user.name Ana",
    "git config --global --add safe.directory /work",
    "git config --global --unset user.email",
    "git config --global init.defaultBranch main",
    "git config --get core.hooksPath",
    "git config --global --get core.hooksPath",
    "git config --global --list",
    "git config -f x.ini a.b c",
    "cat ~/.gitconfig",
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a user with a repository in it."""
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    subprocess.run(["git", "init", "--quiet", "shop"], cwd=home, check=True)
    return home


def is_refused(command: str, home: Path, environment: Mapping[str, str] | None = None) -> bool:
    shop = home / "shop"
    places = Protected.around(shop / ".batonpass", "", shop, environment=environment)
    return find_in_shell(command, (str(shop),), places, enforced=True) is not None


@pytest.mark.parametrize("command", SETTING)
def test_no_spelling_names_another_program(home: Path, command: str) -> None:
    """It would run in the user's name, long after the run has ended. That git takes the spelling is tried."""
    refused = is_refused(command, home)
    subprocess.run(["bash", "-c", command], cwd=home / "shop", check=True)
    asked = ["git", "config", "--get", "core.hooksPath"]
    told = subprocess.run(asked, cwd=home / "shop", capture_output=True, text=True, check=False)

    assert (f"{EVIL}\n", True) == (told.stdout, refused)


@pytest.mark.parametrize("command", HARMLESS)
def test_ordinary_settings_are_left_to_the_agent(home: Path, command: str) -> None:
    """A guard that is in the way is switched off."""
    assert not is_refused(command, home)


def test_no_option_hides_the_setting_behind_a_harmless_one(home: Path) -> None:
    """What follows an option may be its value."""
    assert is_refused(f"git config --global --comment user.name core.hooksPath {EVIL}", home)


def test_files_that_the_environment_names_are_kept_as_well(home: Path) -> None:
    """Git reads them in the place of the usual ones."""
    named = {"XDG_CONFIG_HOME": str(home / "xdg"), "GIT_CONFIG_GLOBAL": str(home / "mine")}

    for path in ("xdg/git/config", "mine"):
        assert is_refused(f"echo x >> {home}/{path}", home, {**os.environ, **named})
        assert not is_refused(f"echo x >> {home}/{path}", home)
