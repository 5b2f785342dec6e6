"""`batonpass completion`: what a shell needs to complete commands, options, ids and names."""

from typing import Final

import click
from click.shell_completion import get_completion_class

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_BATONPASS_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the script with which a shell completes our commands, ids and names.

    bash: eval "$(batonpass completion bash)" in ~/.bashrc. zsh: the same, with zsh, in ~/.zshrc. fish: batonpass
    completion fish > ~/.config/fish/completions/batonpass.fish.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"{shell} cannot be completed")
    root = click.get_current_context().find_root().command
    # What click prints besides is about the version of the shell here; the script may be for another machine.
    shelled = made(root, {}, "batonpass", _VARIABLE)
    click.echo(shelled.source_template % shelled.source_vars())
