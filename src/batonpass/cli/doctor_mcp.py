"""What the doctor says about MCP servers: whether their calls are recorded."""

from collections.abc import Iterator
from pathlib import Path

from batonpass.adapters.mcp.clients import find_configs, find_wrapped
from batonpass.cli.checkup import Check, Level
from batonpass.cli.words import counted
from batonpass.config import Settings
from batonpass.store.home import HOME_NAME


def look_at_servers(found: Settings) -> Iterator[Check]:
    """Yield for each client of the project that a ledger belongs to how many of its servers are behind the proxy."""
    if found.home is None:
        return
    project = found.home.parent if found.home.name == HOME_NAME else Path.cwd()
    for config, behind, all_ in find_wrapped(list(find_configs(project, Path.home()))):
        what = f"{behind} of {counted(all_, 'MCP server')} in {config.path} recorded"
        advice = None if behind == all_ else "`batonpass init mcp` puts them behind the proxy, where that is possible"
        yield Check(Level.OK, "servers", what, advice)
