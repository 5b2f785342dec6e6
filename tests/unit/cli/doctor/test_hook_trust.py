"""What the doctor says about trust: an agent that does not trust our hooks records nothing."""

import json
import sys
from pathlib import Path

import pytest

from batonpass.adapters.coders.hook_files import SettingsScope
from batonpass.adapters.coders.hook_settings import hook_command
from batonpass.adapters.tool_kinds import Coder
from batonpass.cli.doctor.check import Level
from batonpass.cli.doctor.hook_trust import check_trust

APP_SERVER = """#!{python}
import json, sys
assert sys.argv[1:] == ["app-server"]
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "hooks/list":
        print(json.dumps({{"method": "a/notice"}}))
        print(json.dumps({{"id": asked["id"], "result": {{"data": [{{"hooks": {hooks}}}]}}}}), flush=True)
    elif "id" in asked:
        print(json.dumps({{"id": asked["id"], "result": {{}}}}), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return somebody's home, with a PATH of its own."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return tmp_path


def put_codex(home: Path, *statuses: str, command: str | None = None) -> None:
    """Put a program on the PATH that lists hooks as Codex does."""
    ours = command or hook_command(SettingsScope.LOCAL, home, coder=Coder.CODEX)
    hooks = [{"command": ours, "trustStatus": status} for status in statuses]
    program = home / "bin" / "codex"
    program.write_text(APP_SERVER.format(python=sys.executable, hooks=repr(hooks)), encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("statuses", "level", "said"),
    [
        (("trusted", "trusted"), Level.OK, "Codex trusts our hooks"),
        (("trusted", "untrusted"), Level.WARN, "Codex trusts 1 of 2 of our hooks"),
        (("modified",), Level.WARN, "Codex trusts 0 of 1 of our hooks"),
        ((), Level.WARN, "Codex finds no hook of ours"),
    ],
    ids=["all are trusted", "one is not", "changed since", "none is found"],
)
def test_codex_says_itself_what_it_trusts(home: Path, statuses: tuple[str, ...], level: Level, said: str) -> None:
    """Its own answer counts: it skips a hook that it does not trust without a word."""
    put_codex(home, *statuses)

    assert [(level, said)] == [(check.level, check.found) for check in check_trust(Coder.CODEX, home)]


def test_a_codex_that_does_not_answer_is_said_to(home: Path) -> None:
    """The doctor does not guess."""
    program = home / "bin" / "codex"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)

    assert [Level.WARN] == [check.level for check in check_trust(Coder.CODEX, home)]


def test_without_the_program_nothing_is_said(home: Path) -> None:
    """Somebody else may use it here."""
    assert [] == list(check_trust(Coder.CODEX, home))


@pytest.mark.parametrize(
    ("known", "level"),
    [
        ({"shop": "TRUST_FOLDER"}, Level.OK),
        ({"shop/inside": "TRUST_PARENT"}, Level.OK),
        ({"shop": "DO_NOT_TRUST"}, Level.WARN),
        ({"elsewhere": "TRUST_FOLDER"}, Level.WARN),
        ({}, Level.WARN),
    ],
    ids=["this folder", "by its parent", "said no", "another folder", "never asked"],
)
def test_gemini_runs_hooks_in_folders_that_it_trusts(home: Path, known: dict[str, str], level: Level) -> None:
    """The list that Gemini CLI keeps says so."""
    told = {str(home / name): state for name, state in known.items()}
    (home / ".gemini").mkdir()
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps(told), encoding="utf-8")

    assert [level] == [check.level for check in check_trust(Coder.GEMINI, home / "shop")]


def test_qwen_asks_for_trust_only_if_that_is_switched_on(home: Path) -> None:
    """Where it is off, hooks run everywhere, and nothing is said."""
    (home / ".qwen").mkdir()
    off = list(check_trust(Coder.QWEN, home / "shop"))
    (home / ".qwen" / "settings.json").write_text(
        json.dumps({"security": {"folderTrust": {"enabled": True}}}), encoding="utf-8"
    )

    assert ([], [Level.WARN]) == (off, [check.level for check in check_trust(Coder.QWEN, home / "shop")])
