"""Our hooks in Claude Code's settings: once, beside everybody else's, and out again without a trace."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.coders.events import EVENTS
from batonpass.adapters.coders.hook_files import SettingsScope, settings_path
from batonpass.adapters.coders.hook_settings import (
    find_installed,
    hook_command,
    plan_install,
    plan_removal,
)
from batonpass.adapters.settings_edit import Edit
from batonpass.errors import InvalidValueError

COMMAND = "batonpass-hook"
THEIRS = {"type": "command", "command": "prettier --write", "timeout": 3, "strange": [1, None]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the settings are to be."""
    (tmp_path / ".claude").mkdir()
    return tmp_path / ".claude" / "settings.local.json"


def install(path: Path, *, enforce: bool = False, command: str = COMMAND) -> Edit:
    edit = plan_install(path, command, enforce=enforce, within=path.parents[1])
    edit.apply()
    return edit


def remove(path: Path, *, created: bool = False) -> Edit:
    edit = plan_removal(path, created=created)
    edit.apply()
    return edit


def hooks_in(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["hooks"]
    return found


def test_every_event_gets_one_hook(path: Path) -> None:
    """All of them the same command, which waits for itself."""
    install(path)

    assert {event: [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 10}]}] for event in EVENTS} == (
        hooks_in(path)
    )


def test_twice_is_once(path: Path) -> None:
    """The second time nothing is different."""
    install(path)
    before = path.read_bytes()
    edit = install(path)

    assert (False, "", before) == (edit.is_change, edit.diff(), path.read_bytes())


def test_enforcing_blocks_where_the_hook_fails(path: Path) -> None:
    """Only a call can be blocked; going back to observing takes it away."""
    install(path, enforce=True)
    blocked = [event for event, groups in hooks_in(path).items() if "onFailure" in groups[0]["hooks"][0]]
    edit = install(path)

    assert (["PreToolUse"], "block") == (
        blocked,
        json.loads(edit.before or "")["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"],
    )
    assert '-            "onFailure": "block"' in edit.diff()
    assert "onFailure" not in path.read_text(encoding="utf-8")


def test_everybody_elses_hooks_stay(path: Path) -> None:
    """In their order, with fields that we do not know, on our events and on others."""
    theirs: dict[str, Any] = {
        "PreToolUse": [{"matcher": "Edit", "hooks": [THEIRS]}],
        "FileChanged": [{"hooks": [THEIRS]}],
    }
    path.write_text(json.dumps({"model": "opus", "hooks": theirs}, indent=4), encoding="utf-8")
    install(path)
    merged = hooks_in(path)
    remove(path)

    assert theirs["PreToolUse"][0] == merged["PreToolUse"][0]
    assert [*theirs, *(event for event in EVENTS if event != "PreToolUse")] == [*merged]
    assert {"model": "opus", "hooks": theirs} == json.loads(path.read_text(encoding="utf-8"))


def test_the_rest_of_the_file_keeps_its_bytes(path: Path) -> None:
    """Also where somebody wrote it by hand, in a style of their own."""
    head, tail = '{\n\t"permissions": { "allow": ["Bash(ls)",  "Read"] },', '\n\t"env": {"A":"ü"}\n}\n'
    path.write_text(f'{head}\n\t"hooks": {{}},{tail}', encoding="utf-8")
    install(path)
    text = path.read_text(encoding="utf-8")

    assert (True, True) == (
        text.startswith(f'{head}\n\t"hooks": {{\n\t\t"SessionStart"'),
        text.endswith(f"\n\t}},{tail}"),
    )
    remove(path)
    assert f"{head}{tail}" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{}\n",
        '{\n  "a": 1\n}\n',
        '{\r\n    "a": [1, 2],\r\n    "b": {}\r\n}\r\n',
        '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  },\n  "z": 0\n}',
    ],
)
def test_out_again_without_a_trace(path: Path, text: str) -> None:
    """What was there before us is there after us, byte for byte."""
    path.write_bytes(text.encode())
    install(path)
    json.loads(path.read_bytes())
    remove(path)

    assert text.encode() == path.read_bytes()


names = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(names.filter(lambda name: name != "hooks"), values, max_size=4),
    st.sampled_from([None, 2, 4, "\t"]),
    st.booleans(),
)
def test_any_settings_survive(
    tmp_path_factory: pytest.TempPathFactory,
    document: dict[str, Any],
    indent: int | str | None,
    ascii_only: bool,  # noqa: FBT001
) -> None:
    """Whatever else is in the file is the same afterwards, and in the same order."""
    path = tmp_path_factory.mktemp("settings") / "settings.json"
    path.write_text(json.dumps(document, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    plan_install(path, COMMAND).apply()
    merged = json.loads(path.read_text(encoding="utf-8"))
    hooks = merged.pop("hooks")
    plan_removal(path).apply()

    assert ([*document.items()], [*EVENTS]) == ([*merged.items()], [*hooks])
    assert document == json.loads(path.read_text(encoding="utf-8"))


def test_an_edited_file_loses_exactly_ours(path: Path) -> None:
    """Somebody moved our hook into a group with theirs, and copied it to another event."""
    install(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    ours = document["hooks"]["Stop"][0]["hooks"][0]
    document["hooks"]["Stop"] = [{"matcher": "x", "hooks": [THEIRS, {**ours, "timeout": 99}]}]
    document["hooks"]["PreCompact"] = [{"hooks": [ours]}]
    path.write_text(json.dumps(document), encoding="utf-8")
    again = plan_install(path, COMMAND)
    remove(path)

    assert {"Stop": [{"matcher": "x", "hooks": [THEIRS]}]} == hooks_in(path)
    assert [{"matcher": "x", "hooks": [THEIRS]}, {"hooks": [ours]}] == json.loads(again.after or "")["hooks"]["Stop"]
    assert "PreCompact" not in json.loads(again.after or "")["hooks"]


def test_an_older_hook_of_ours_is_replaced_where_it_stands(path: Path) -> None:
    """A new place of the program, or another mode, never doubles it."""
    install(path, command="/old/python -I -S /old/batonpass/adapters/coders/client.py --project /x")
    install(path)

    assert 1 == len(hooks_in(path)["Stop"])
    assert COMMAND == hooks_in(path)["Stop"][0]["hooks"][0]["command"]


def test_a_file_that_we_made_goes_with_us(path: Path) -> None:
    """Unless somebody has put something into it."""
    first = install(path)
    gone = remove(path, created=True)
    install(path)
    path.write_text(path.read_text(encoding="utf-8").replace("{", '{"a": 1,', 1), encoding="utf-8")
    remove(path, created=True)

    assert (None, None) == (first.before, gone.after)
    assert {"a": 1} == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "is not valid JSON"),
        (b"// a comment\n{}", "is not valid JSON"),
        (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
        (b'{"hooks": {"Stop": [], "Stop": []}}', "the key 'Stop' is there twice"),
        (b"[]", "is not a JSON object"),
        (b'{"hooks": []}', "hooks: does not have the form that Claude Code expects"),
        (b'{"hooks": {"Stop": {}}}', "hooks: does not have the form that Claude Code expects"),
        (b'{"a": "\xff"}', "cannot be read"),
    ],
)
def test_what_we_do_not_understand_is_not_touched(path: Path, text: bytes, problem: str) -> None:
    """One sentence says what is wrong with it."""
    path.write_bytes(text)

    with pytest.raises(InvalidValueError) as refused:
        plan_install(path, COMMAND)
    with pytest.raises(InvalidValueError):
        plan_removal(path)
    assert problem in str(refused.value)
    assert text == path.read_bytes()


def test_a_link_out_of_the_project_is_not_followed(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A repository could lead us anywhere; within it a link is followed, and stays one."""
    outside = tmp_path_factory.mktemp("outside") / "theirs.json"
    outside.write_text("{}", encoding="utf-8")
    path.symlink_to(outside)
    with pytest.raises(InvalidValueError, match="outside the project"):
        install(path)
    path.unlink()
    inside = path.with_name("mine.json")
    inside.write_text("{}", encoding="utf-8")
    path.symlink_to(inside)
    install(path)

    assert ("{}", True) == (outside.read_text(encoding="utf-8"), path.is_symlink())
    assert [*EVENTS] == [*hooks_in(inside)]


def test_the_mode_of_a_file_stays(path: Path) -> None:
    """Whoever could not read it before cannot now."""
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o640)
    install(path)

    assert (0o640, [path]) == (path.stat().st_mode & 0o777, [*path.parent.iterdir()])


def test_a_file_that_changed_meanwhile_is_not_overwritten(path: Path) -> None:
    """Claude Code itself writes to it."""
    edit = plan_install(path, COMMAND)
    path.write_text('{"a": 1}', encoding="utf-8")

    with pytest.raises(InvalidValueError, match="changed by another program"):
        edit.apply()
    assert '{"a": 1}' == path.read_text(encoding="utf-8")


def test_each_scope_has_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared file holds no path of this machine; the user's names no project."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    project = tmp_path / "my shop"
    paths = [settings_path(scope, project).relative_to(tmp_path).as_posix() for scope in SettingsScope]
    commands = [shlex.split(hook_command(scope, project, ledger="x.db", enforce=True)) for scope in SettingsScope]

    assert ["my shop/.claude/settings.local.json", "my shop/.claude/settings.json", "config/settings.json"] == paths
    assert [sys.executable, "-I", "-S", commands[0][3], "--project", str(project)] == commands[0][:6]
    assert ["batonpass-hook", "--ledger", "x.db", "--enforce"] == commands[1]
    assert "--project" not in commands[2]


def test_what_is_installed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every file that counts; damaged ones are passed over."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    project = tmp_path / "shop"
    shared = settings_path(SettingsScope.SHARED, project)
    plan_install(shared, "batonpass-hook --ledger 'a b.db' --enforce", enforce=True).apply()
    settings_path(SettingsScope.LOCAL, project).write_text("{", encoding="utf-8")
    ((scope, found),) = find_installed(project)

    assert (SettingsScope.SHARED, shared, True) == (scope, found.path, found.enforce)
    assert ["--ledger", "a b.db", "--enforce"] == found.arguments
