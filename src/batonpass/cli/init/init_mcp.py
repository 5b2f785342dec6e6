"""`batonpass init mcp`: start a client's MCP servers behind the proxy, and undo that."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from batonpass.adapters.mcp.clients.client_settings import Client, Config, config_of, find_backup, find_configs, plan
from batonpass.adapters.mcp.clients.wrapped_servers import PROGRAM, ServerEntry, Wrapper
from batonpass.adapters.settings_edit import apply_all
from batonpass.cli.git.repository import is_ignored
from batonpass.cli.init.init_ledger import make_ledger
from batonpass.cli.input.ledger_access import ledger_word
from batonpass.cli.input.options import ledger_option, project_option
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say, tell
from batonpass.cli.output.units import counted
from batonpass.config import Settings, find_settings
from batonpass.store.factory import SQLITE


@click.command()
@project_option
@click.option(
    "--client",
    type=click.Choice([client.value for client in Client]),
    help="Only this client's servers.  [default: all clients]",
)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Only the servers in this file.",
)
@click.option("--user", is_flag=True, help="The servers of all your projects: the settings in your home.")
@click.option("--shared", is_flag=True, help="For everybody: no paths of this machine, and batonpass from the PATH.")
@click.option("--enforce", is_flag=True, help="Hold and deny calls by the policy; make no call without recording it.")
@click.option("--undo", is_flag=True, help="Start the servers without the proxy again.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@ledger_option
def mcp(
    project: Path,
    *,
    client: str | None,
    file: Path | None,
    user: bool,
    shared: bool,
    enforce: bool,
    undo: bool,
    dry_run: bool,
) -> None:
    """Record the calls of MCP clients. Their servers are started behind `batonpass mcp-proxy`.

    Prints the difference in the clients' settings. Running it again changes nothing. Comments, other settings, servers
    that only the client can reach, and servers that you put behind the proxy yourself stay as they are. All files are
    written, or none. --undo restores them byte for byte, unless they were changed since.
    """
    if file is not None and (client is not None or user):
        raise click.UsageError("--config names a file, so --client and --user cannot be given too")
    project = project.resolve()
    found = find_settings(ledger_word(), directory=project)
    chosen = None if client is None else Client(client)
    configs = [config_of(file)] if file else list(find_configs(project, Path.home(), chosen, user=user))
    there = [config for config in configs if config.path.exists()]
    if not there:
        tell(f"no settings found: looked for {', '.join(str(config.path) for config in configs)}")
        click.get_current_context().exit(NO)
    wrapper = None if undo else _wrapper(found, user=user, shared=shared, enforce=enforce)
    planned = [plan(config, find_backup(found.home, config.path), wrapper) for config in there]
    if wrapper is not None and not user and not dry_run:
        make_ledger(found)
    changed = [(edit, backup) for edit, backup in planned if edit.is_change]
    if not dry_run:
        # Backups come first: without one, a file could not be restored.
        kept = [backup.edit(found.home) for _, backup in changed] if wrapper is not None and found.home else []
        apply_all([*kept, *(edit for edit, _ in changed)])
    for edit, _ in changed:
        for line in edit.diff().splitlines():
            say(line)
    _tell(there, wrapper, changed=bool(changed), enforce=enforce, undo=undo, dry_run=dry_run)
    if undo and not changed:
        click.get_current_context().exit(NO)
    if wrapper is not None and not shared and not dry_run:
        _tell_seen(there)


def _wrapper(found: Settings, *, user: bool, shared: bool, enforce: bool) -> Wrapper:
    given = ledger_word()
    if given is None and not user and not shared and found.ledger.startswith(SQLITE):
        given = found.ledger.removeprefix(SQLITE)  # a client may start its servers in any directory
    options = [*(["--ledger", given] if given else []), *(["--enforce"] if enforce else [])]
    return Wrapper(program=PROGRAM if shared else _program(), options=tuple(options))


def _program() -> str:
    beside = Path(sys.executable).with_name(PROGRAM)
    return str(beside) if beside.exists() else shutil.which(PROGRAM) or PROGRAM


def _tell(
    configs: Sequence[Config], wrapper: Wrapper | None, *, changed: bool, enforce: bool, undo: bool, dry_run: bool
) -> None:
    entries = [entry for config in configs for entry in config.entries(config.read() or "")]
    behind = sum(entry.is_wrapped for entry in entries)
    if not changed:
        tell(f"nothing to do: {behind} of {counted(len(entries), 'server')} behind the proxy")
    elif dry_run:
        tell("nothing was changed")
    elif undo:
        tell("the servers are started as before; the recorded receipts stay")
    else:
        what = "recorded, held and denied by the policy" if enforce else "recorded"
        tell(f"{counted(behind, 'server')}: from the client's next start, calls are {what}; --undo reverts this")
    for entry in entries if wrapper is not None and not dry_run else ():
        if not entry.is_wrapped:
            tell(f"{entry.name} stays as it is: {_why_left(entry)}")


def _why_left(entry: ServerEntry) -> str:
    if "url" in entry.value:
        return "only its client can sign in there, or it uses the older transport"
    if "command" in entry.value:
        return "it is written as an inline table; give it a table of its own to have it recorded"
    return "its settings do not say how to start it"


def _tell_seen(configs: Sequence[Config]) -> None:
    for config in configs:
        inside = (config.path.parent / ".git").exists() or (config.path.parent.parent / ".git").exists()
        if inside and not is_ignored(config.path):
            tell(f"git does not ignore {config.path.name}, which has paths of this machine: use --shared or .gitignore")
