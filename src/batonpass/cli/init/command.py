"""`batonpass init`: set up recording for other programs."""

import json
from pathlib import Path
from typing import Final

import click

from batonpass.adapters.coders.hook_settings import (
    SettingsScope,
    find_installed,
    hook_command,
    plan_install,
    plan_removal,
    settings_path,
)
from batonpass.adapters.settings_edit import Edit
from batonpass.cli.git.repository import is_ignored
from batonpass.cli.init.init_ledger import make_ledger
from batonpass.cli.init.init_mcp import mcp
from batonpass.cli.input.ledger_access import ledger_word
from batonpass.cli.input.options import ledger_option, project_option
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say, tell
from batonpass.config import Settings, find_settings
from batonpass.errors import InvalidValueError

# In the ledger's home: the settings files that we created. Only those may be deleted together with our hooks.
CREATED: Final = "hooks.created"


@click.group()
def command() -> None:
    """Set up recording for Claude Code and MCP clients."""


command.add_command(mcp)


@command.command("claude-code")
@project_option
@click.option("--shared", is_flag=True, help="For everybody: .claude/settings.json, with batonpass-hook from the PATH.")
@click.option("--user", is_flag=True, help="For all your projects that have a ledger: the settings in your home.")
@click.option("--enforce", is_flag=True, help="Refuse calls that cannot be recorded, or that batonpass.toml denies.")
@click.option("--undo", is_flag=True, help="Remove our hooks.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@ledger_option
def claude_code(
    project: Path,
    *,
    shared: bool,
    user: bool,
    enforce: bool,
    undo: bool,
    dry_run: bool,
) -> None:
    """Record what Claude Code does in a project, through its hooks.

    Prints the difference in Claude Code's settings; other hooks and settings stay as they are. Running it again changes
    nothing. It only observes, unless --enforce is given.
    """
    if shared and user:
        raise click.UsageError("--shared is for one project and --user for all of them; choose one")
    if user and enforce:
        raise click.UsageError("--enforce needs a project: where there is no ledger, every call would be refused")
    scope = SettingsScope.SHARED if shared else SettingsScope.USER if user else SettingsScope.LOCAL
    project = project.resolve()
    ledger = ledger_word()
    found = find_settings(ledger, directory=project)
    path = settings_path(scope, project)
    within = None if scope is SettingsScope.USER else project
    if undo:
        edit = plan_removal(path, created=str(path) in _created(found), within=within)
        _refuse_nothing(edit)
    else:
        _refuse_twice(project, path)
        wanted = hook_command(scope, project, ledger=ledger, enforce=enforce)
        edit = plan_install(path, wanted, enforce=enforce, within=within)
        if scope is not SettingsScope.USER and not dry_run:
            make_ledger(found)
    _carry_out(edit, found, dry_run=dry_run)
    _tell(edit, scope, enforce=enforce, undo=undo, dry_run=dry_run)


def _carry_out(edit: Edit, found: Settings, *, dry_run: bool) -> None:
    if edit.is_change and not dry_run:
        # Apply before printing: if the reader closes the pipe early, the hooks are installed all the same.
        _apply(edit, found)
    for line in edit.diff().splitlines():
        say(line)


def _apply(edit: Edit, found: Settings) -> None:
    edit.apply()
    created = _created(found)
    if edit.before is None:
        created.add(str(edit.path))
    elif edit.after is None:
        created.discard(str(edit.path))
    if created != _created(found) and found.home is not None and found.home.is_dir():
        (found.home / CREATED).write_text(json.dumps(sorted(created)), encoding="utf-8")


def _tell(edit: Edit, scope: SettingsScope, *, enforce: bool, undo: bool, dry_run: bool) -> None:
    if not edit.is_change:
        tell(f"nothing to do: our hooks are already in {edit.path}")
    elif dry_run:
        tell("nothing was changed")
    elif undo:
        tell(f"removed our hooks from {edit.path}; the recorded receipts stay")
    else:
        what = (
            "calls that cannot be recorded are refused"
            if enforce
            else "everything is recorded, and only calls that would change the ledger or read its keys are refused"
        )
        tell(f"from the next session of Claude Code, {what}; --undo reverts this")
    if scope is SettingsScope.LOCAL and not undo and not dry_run and edit.path.exists() and not is_ignored(edit.path):
        tell(f"git does not ignore {edit.path.name}, which has paths of this machine: add it to .gitignore")
    if scope is SettingsScope.SHARED and enforce and not undo:
        tell("without batonpass-hook on the PATH, Claude Code can make no call here")


def _refuse_nothing(edit: Edit) -> None:
    if not edit.is_change:
        tell(f"there are no hooks of ours in {edit.path}")
        click.get_current_context().exit(NO)


def _refuse_twice(project: Path, path: Path) -> None:
    """Refuse hooks in a second file: Claude Code would run both, and everything would be recorded twice."""
    for scope, installed in find_installed(project):
        if installed.path != path:
            option = "" if scope is SettingsScope.LOCAL else f"--{scope} "
            raise InvalidValueError(
                str(installed.path),
                f"already has our hooks, and everything would be recorded twice; run `batonpass init claude-code "
                f"{option}--undo` first",
            )


def _created(found: Settings) -> set[str]:
    if found.home is None:
        return set()
    try:
        paths = json.loads((found.home / CREATED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {path for path in paths if isinstance(path, str)} if isinstance(paths, list) else set()
