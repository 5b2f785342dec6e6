"""Checks of MCP clients: how many of their servers are recorded."""

from collections.abc import Iterator
from pathlib import Path

from batonpass.adapters.mcp.clients.client_settings import find_configs, find_wrapped
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.output.units import counted
from batonpass.config import Settings
from batonpass.store.home import HOME_NAME


def look_at_servers(found: Settings) -> Iterator[DoctorCheck]:
    """Yield for each MCP client of the project how many of its servers are behind the proxy."""
    if found.home is None:
        return
    project = found.home.parent if found.home.name == HOME_NAME else Path.cwd()
    for config, behind, all_ in find_wrapped(list(find_configs(project, Path.home()))):
        what = f"{behind} of {counted(all_, 'MCP server')} in {config.path} recorded"
        advice = None if behind == all_ else "`batonpass init mcp` puts them behind the proxy where possible"
        yield DoctorCheck(Level.OK, "servers", what, advice)
