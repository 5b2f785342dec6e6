"""`batonpass init NAME` for every agent: merged beside others' hooks, once, and removed without a trace."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from batonpass.adapters.coders.agents_here import find_agents
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_files import HOOK_FILES, HookForm, SettingsScope, settings_path
from batonpass.adapters.coders.hook_settings import (
    TIMEOUT,
    find_installed,
    hook_command,
    plan_hooks,
    plan_hooks_removal,
)
from batonpass.adapters.settings_edit import apply_all
from batonpass.adapters.tool_kinds import Coder
from batonpass.errors import InvalidValueError

IN_JSON = [coder for coder, file in HOOK_FILES.items() if file.form in {HookForm.GROUPS, HookForm.FLAT}]
OF_THEIR_OWN = [coder for coder in HOOK_FILES if coder not in IN_JSON]


def install(coder: Coder, project: Path, *, enforce: bool = False) -> list[Path]:
    """Add our hooks, and return the files."""
    path = settings_path(SettingsScope.LOCAL, project, coder)
    command = hook_command(SettingsScope.LOCAL, project, enforce=enforce, coder=coder)
    edits = plan_hooks(coder, path, command, enforce=enforce, within=project)
    apply_all(edits)
    return [edit.path for edit in edits]


@pytest.mark.parametrize("coder", HOOK_FILES)
def test_hooks_are_found_once_and_removed_without_a_trace(coder: Coder, tmp_path: Path) -> None:
    """Twice changes nothing more; what we created is gone after --undo."""
    files = install(coder, tmp_path, enforce=DIALECTS[coder].deny is not None)
    path = settings_path(SettingsScope.LOCAL, tmp_path, coder)
    again = plan_hooks(
        coder,
        path,
        hook_command(SettingsScope.LOCAL, tmp_path, enforce=DIALECTS[coder].deny is not None, coder=coder),
        enforce=DIALECTS[coder].deny is not None,
    )
    ((scope, found),) = find_installed(tmp_path, coder)
    undone = plan_hooks_removal(coder, path, created=lambda _: True)
    apply_all(undone)

    assert not any(edit.is_change for edit in again)
    assert (SettingsScope.LOCAL, DIALECTS[coder].deny is not None) == (scope, found.enforce)
    named = [] if coder is Coder.CLAUDE_CODE else ["--agent", str(coder)]
    assert [*named, "--project", str(tmp_path)] == [word for word in found.arguments if word != "--enforce"]
    assert [] == [file for file in files if file.exists()]
    assert [] == list(find_installed(tmp_path, coder))


@pytest.mark.parametrize("coder", IN_JSON)
def test_hooks_of_others_keep_their_bytes(coder: Coder, tmp_path: Path) -> None:
    """A file with hooks and settings of others is byte for byte the same after --undo."""
    file = HOOK_FILES[coder]
    theirs = {"type": "command", file.command: "their-hook", file.timeout: 3}
    entry = theirs if file.form is HookForm.FLAT else {"hooks": [theirs]}
    path = settings_path(SettingsScope.LOCAL, tmp_path, coder)
    path.parent.mkdir(parents=True)
    event = DIALECTS[coder].events[1]
    before = json.dumps({"version": 1, "theme": "dark", "hooks": {event: [entry]}}, indent=4) + "\n"
    path.write_text(before, encoding="utf-8")
    install(coder, tmp_path)
    merged = json.loads(path.read_text(encoding="utf-8"))
    apply_all(plan_hooks_removal(coder, path, created=lambda _: False))

    assert entry == merged["hooks"][event][0]
    assert 2 == len(merged["hooks"][event])
    assert set(DIALECTS[coder].events) == set(merged["hooks"])
    assert before == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("coder", IN_JSON)
def test_the_time_limit_is_in_the_agents_own_unit(coder: Coder, tmp_path: Path) -> None:
    """Ten thousand milliseconds where others say ten seconds."""
    (path,) = install(coder, tmp_path)
    file = HOOK_FILES[coder]
    (first,) = json.loads(path.read_text(encoding="utf-8"))["hooks"][DIALECTS[coder].events[0]]
    entry = first if file.form is HookForm.FLAT else first["hooks"][0]

    assert TIMEOUT == entry[file.timeout] / DIALECTS[coder].second


@pytest.mark.parametrize("coder", [Coder.GEMINI, Coder.QWEN])
def test_comments_stay(coder: Coder, tmp_path: Path) -> None:
    """These two take comments in their settings; ours are added beside them."""
    path = settings_path(SettingsScope.LOCAL, tmp_path, coder)
    path.parent.mkdir()
    before = '{\n  // dark at night\n  "ui": { "theme": "dark" }\n}\n'
    path.write_text(before, encoding="utf-8")
    install(coder, tmp_path)
    merged = path.read_text(encoding="utf-8")
    apply_all(plan_hooks_removal(coder, path, created=lambda _: False))

    assert "// dark at night" in merged
    assert "--agent" in merged
    assert before == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("coder", OF_THEIR_OWN)
def test_a_file_of_somebody_else_is_not_overwritten(coder: Coder, tmp_path: Path) -> None:
    """A plugin or script with our name that is not ours stays, and the command says so."""
    (path, *_) = install(coder, tmp_path)
    path.write_text("theirs", encoding="utf-8")

    with pytest.raises(InvalidValueError, match="is not ours"):
        install(coder, tmp_path)
    assert "theirs" == path.read_text(encoding="utf-8")


def test_the_script_of_cline_runs_the_hook_command(tmp_path: Path) -> None:
    """It is executable, and passes on what it is given, in a project with a space and a quote in its name."""
    project = tmp_path / "ana's shop"
    project.mkdir()
    path = project / "PreToolUse.py"
    seen = tmp_path / "seen"
    command = shlex.join(["/bin/sh", "-c", f"cat > {shlex.quote(str(seen))} # batonpass-hook"])
    apply_all(plan_hooks(Coder.CLINE, project, command))
    subprocess.run([str(path)], input=b"an event", check=True)

    assert (True, "an event") == (os.access(path, os.X_OK), seen.read_text(encoding="utf-8"))


def test_a_shared_file_has_no_path_of_this_machine(tmp_path: Path) -> None:
    """Everybody has the command on the PATH."""
    assert "batonpass-hook --agent codex" == hook_command(SettingsScope.SHARED, tmp_path, coder=Coder.CODEX)


def test_agents_are_found_by_their_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in the project, settings in the home, or a program on the PATH; and whether it is recorded."""
    home, project = tmp_path / "home", tmp_path / "shop"
    (home / ".gemini").mkdir(parents=True)
    (project / ".qwen").mkdir(parents=True)
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(program.parent))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    install(Coder.QWEN, project)

    found = {one.coder: (one.why, one.by is not None) for one in find_agents(project)}

    assert {
        Coder.CODEX: ("codex on the PATH", False),
        Coder.QWEN: (".qwen here", True),
        Coder.GEMINI: ("settings in your home", False),
    } == found
