"""`batonpass init`: set up recording for other programs."""

from pathlib import Path

import click

from batonpass.adapters.coders.agents_here import find_agents
from batonpass.adapters.coders.hook_files import HOOK_FILES
from batonpass.cli.init.agent_hooks import hooks_command
from batonpass.cli.init.init_mcp import mcp
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say, tell


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Set up recording for coding agents and MCP clients.

    Without a name it says which coding agents are used here, and how each is set up. It changes nothing then.
    """
    if context.invoked_subcommand is not None:
        return
    found = list(find_agents(Path.cwd()))
    for one in found:
        state = "recorded, by " + str(one.by) if one.by is not None else f"not recorded: batonpass init {one.coder}"
        say(f"{one.title}  ({one.why})  {state}")
    if not found:
        tell(f"no coding agent was found here; these can be set up: {', '.join(HOOK_FILES)}")
        context.exit(NO)


command.add_command(mcp)
for coder in HOOK_FILES:
    command.add_command(hooks_command(coder))
