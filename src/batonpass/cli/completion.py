"""`batonpass completion`: shell completion of commands, options, ids and names."""

from typing import Final

import click
from click.shell_completion import get_completion_class

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_BATONPASS_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a completion script for your shell.

    bash: put `eval "$(batonpass completion bash)"` into ~/.bashrc.

    zsh: put `eval "$(batonpass completion zsh)"` into ~/.zshrc.

    fish: run `batonpass completion fish > ~/.config/fish/completions/batonpass.fish`.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"there is no completion for {shell}")
    root = click.get_current_context().find_root().command
    # Click would also complain about the version of the local shell; the script may be for another machine.
    shelled = made(root, {}, "batonpass", _VARIABLE)
    click.echo(shelled.source_template % shelled.source_vars())
