"""A group of commands, each in its own module, which is loaded when the command is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class DeferredGroup(click.Group):
    """Commands by name, as `module:attribute` below this package. Running one does not load the others."""

    def __init__(self, name: str | None = None, *, homes: Mapping[str, str], **settings: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(name, **settings)
        self._homes = homes

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command of this name, from its module."""
        if cmd_name not in self._homes:
            return None
        module, _, attribute = self._homes[cmd_name].partition(":")
        found = getattr(import_module(f"batonpass.cli.{module}"), attribute)
        if not isinstance(found, click.Command):
            raise TypeError(cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that comes next. For a misspelled name, the error says which one is alike."""
        name = args[0]
        if name not in self._homes and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415 - for those who mistyped

            if alike := get_close_matches(name, self._homes, 1):
                ctx.fail(f"No such command {name!r}. Did you mean {alike[0]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the mapping."""
        return list(self._homes)
