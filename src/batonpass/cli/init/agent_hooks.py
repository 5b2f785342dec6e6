"""`batonpass init NAME`: record the sessions of a coding agent through its hooks."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_files import HOOK_FILES, HookForm, SettingsScope, settings_path
from batonpass.adapters.coders.hook_settings import find_installed, hook_command, plan_hooks, plan_hooks_removal
from batonpass.adapters.settings_edit import Edit, apply_all
from batonpass.adapters.tool_kinds import Coder
from batonpass.cli.git.repository import is_ignored
from batonpass.cli.init.init_ledger import make_ledger
from batonpass.cli.input.ledger_access import ledger_word
from batonpass.cli.input.options import ledger_option, project_option
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say, tell
from batonpass.config import Settings, find_settings
from batonpass.errors import InvalidValueError

# In the ledger's home: the settings files that we created. Only those may be deleted together with our hooks.
CREATED: Final = "hooks.created"


class _Asked(Struct, frozen=True, kw_only=True):
    """The options of the command."""

    coder: Coder
    scope: SettingsScope
    enforce: bool
    undo: bool
    dry_run: bool

    @property
    def title(self) -> str:
        return DIALECTS[self.coder].title


def hooks_command(coder: Coder) -> click.Command:
    """Return the command that sets up the hooks of one agent."""
    title, file = DIALECTS[coder].title, HOOK_FILES[coder]

    def set_up(project: Path, *, shared: bool, enforce: bool, undo: bool, dry_run: bool, user: bool = False) -> None:
        _refuse_options(coder, shared=shared, user=user, enforce=enforce)
        scope = SettingsScope.SHARED if shared else SettingsScope.USER if user else SettingsScope.LOCAL
        _set_up(project.resolve(), _Asked(coder=coder, scope=scope, enforce=enforce, undo=undo, dry_run=dry_run))

    set_up.__doc__ = f"""Record the sessions of {title} through its hooks.

    Prints the difference in {title}'s settings; other hooks and settings stay as they are. Running it again changes
    nothing. It only observes, unless --enforce is given.
    """
    what = {HookForm.PLUGIN: "plugin", HookForm.SCRIPTS: "scripts"}.get(file.form, "hooks")
    everywhere = "For all your projects that have a ledger: the settings in your home."
    options = [
        project_option,
        click.option(
            "--shared", is_flag=True, help=f"For everybody: {file.project}, with batonpass-hook from the PATH."
        ),
        *([click.option("--user", is_flag=True, help=everywhere)] if file.user is not None else []),
        click.option(
            "--enforce", is_flag=True, help="Refuse calls that cannot be recorded, or that batonpass.toml denies."
        ),
        click.option("--undo", is_flag=True, help=f"Remove our {what}."),
        click.option("--dry-run", is_flag=True, help="Show the difference and change nothing."),
        ledger_option,
    ]
    decorated = set_up
    for option in reversed(options):
        decorated = option(decorated)
    return click.command(str(coder))(decorated)


def _refuse_options(coder: Coder, *, shared: bool, user: bool, enforce: bool) -> None:
    if shared and user:
        raise click.UsageError("--shared is for one project and --user for all of them; choose one")
    if user and enforce:
        raise click.UsageError("--enforce needs a project: where there is no ledger, every call would be refused")
    if enforce and DIALECTS[coder].deny is None:
        raise click.UsageError(f"--enforce is not possible here: {DIALECTS[coder].cannot[0]}")


def _set_up(project: Path, asked: _Asked) -> None:
    ledger = ledger_word()
    found = find_settings(ledger, directory=project)
    path = settings_path(asked.scope, project, asked.coder)
    within = None if asked.scope is SettingsScope.USER else project
    if asked.undo:
        made = created(found)
        edits = plan_hooks_removal(asked.coder, path, created=lambda one: str(one) in made, within=within)
        if not any(edit.is_change for edit in edits):
            tell(f"there are no hooks of ours in {path}")
            click.get_current_context().exit(NO)
    else:
        _refuse_twice(project, path, asked.coder)
        _refuse_other_mode(project, asked)
        wanted = hook_command(asked.scope, project, ledger=ledger, enforce=asked.enforce, coder=asked.coder)
        edits = plan_hooks(asked.coder, path, wanted, enforce=asked.enforce, within=within)
        if asked.scope is not SettingsScope.USER and not asked.dry_run:
            make_ledger(found)
    _carry_out(edits, found, dry_run=asked.dry_run)
    _tell(edits, path, asked)


def _carry_out(edits: Sequence[Edit], found: Settings, *, dry_run: bool) -> None:
    if not dry_run and any(edit.is_change for edit in edits):
        # Apply before printing: if the reader closes the pipe early, the hooks are installed all the same.
        _apply(edits, found)
    for edit in edits:
        for line in edit.diff().splitlines():
            say(line)


def _apply(edits: Sequence[Edit], found: Settings) -> None:
    apply_all(edits)
    before = created(found)
    after = {*before}
    for edit in edits:
        if edit.before is None and edit.after is not None:
            after.add(str(edit.path))
        elif edit.after is None:
            after.discard(str(edit.path))
    if after != before and found.home is not None and found.home.is_dir():
        (found.home / CREATED).write_text(json.dumps(sorted(after)), encoding="utf-8")


def _tell(edits: Sequence[Edit], path: Path, asked: _Asked) -> None:
    if not any(edit.is_change for edit in edits):
        tell(f"nothing to do: our hooks are already in {path}")
    elif asked.dry_run:
        tell("nothing was changed")
    elif asked.undo:
        tell(f"removed our hooks from {path}; the recorded receipts stay")
    else:
        what = (
            "calls that cannot be recorded are refused"
            if asked.enforce
            else "everything is recorded, and only calls that would change the ledger or read its keys are refused"
        )
        if DIALECTS[asked.coder].deny is None:
            what = "everything is recorded, and nothing is refused"
        tell(f"from the next session of {asked.title}, {what}; --undo reverts this")
        if (trust := HOOK_FILES[asked.coder].trust) is not None:
            tell(trust)
        for missing in DIALECTS[asked.coder].cannot:
            tell(f"note: {missing}")
    _tell_of_files(path, asked)


def _tell_of_files(path: Path, asked: _Asked) -> None:
    if asked.scope is SettingsScope.LOCAL and not asked.undo and not asked.dry_run:
        shown = path / "PreToolUse.py" if HOOK_FILES[asked.coder].form is HookForm.SCRIPTS else path
        if shown.exists() and not is_ignored(shown):
            tell(f"git does not ignore {path.name}, which has paths of this machine: add it to .gitignore")
    if asked.scope is SettingsScope.SHARED and asked.enforce and not asked.undo:
        tell(f"without batonpass-hook on the PATH, {asked.title} can make no call here")


def _refuse_twice(project: Path, path: Path, coder: Coder) -> None:
    """Refuse hooks in a second file: the agent would run both, and everything would be recorded twice."""
    for scope, installed in find_installed(project, coder):
        if installed.path != path:
            option = "" if scope is SettingsScope.LOCAL else f"--{scope} "
            raise InvalidValueError(
                str(installed.path),
                f"already has our hooks, and everything would be recorded twice; run `batonpass init {coder} "
                f"{option}--undo` first",
            )


def _refuse_other_mode(project: Path, asked: _Asked) -> None:
    """Refuse another mode than the other agents here have: one recorder serves all of them, and has one mode."""
    for coder in HOOK_FILES:
        if coder is asked.coder or DIALECTS[coder].deny is None or DIALECTS[asked.coder].deny is None:
            continue
        for _, installed in find_installed(project, coder):
            if "--project" in installed.arguments and installed.enforce != asked.enforce:
                there, advice = (
                    ("enforced", f"add --enforce, or run `batonpass init {coder}` first")
                    if installed.enforce
                    else ("only observed", f"leave out --enforce, or run `batonpass init {coder} --enforce` first")
                )
                raise InvalidValueError(
                    str(installed.path),
                    f"{DIALECTS[coder].title} is {there} here, and the agents of one directory share a mode; {advice}",
                )


def created(found: Settings) -> set[str]:
    """Return the settings files that we created."""
    if found.home is None:
        return set()
    try:
        paths = json.loads((found.home / CREATED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {path for path in paths if isinstance(path, str)} if isinstance(paths, list) else set()
