"""`batonpass ui`: look at this directory's ledger in a browser."""

import os
import sys
import webbrowser
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

import click

from batonpass.cli.input.options import ledger_option
from batonpass.cli.output.terminal import paint, tell
from batonpass.cli.server.serve import own_user, require_extra, serve_ledger

if TYPE_CHECKING:
    from batonpass.server.control_plane import ControlPlane


_OPENER: Final = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">'


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port, on this machine alone; 0 for any that is free.",
)
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open it in your browser.")
@ledger_option
def command(*, port: int, opens: bool) -> None:
    """Look at this directory's ledger in your browser, until Ctrl-C.

    Needs no set-up: it listens on this machine alone, and the link that it prints lets you in once, within ten minutes.
    """
    require_extra()
    from batonpass.server.listener import ServerPlace  # noqa: PLC0415 - needs the extra

    def ready(plane: "ControlPlane", address: str) -> None:
        link = f"{address}/enter#{plane.entrance.open(f'user:{own_user()}')}"
        tell(f"{plane.relay.store.url} is at ", paint(link, bold=True))
        tell("  the link lets you in once, within ten minutes; Ctrl-C ends it")
        if opens and _has_screen():
            # Through a file that only this user reads: the arguments of a browser can be seen by everybody.
            opener.write(_OPENER.format(escape(link)))
            opener.flush()
            webbrowser.open(Path(opener.name).as_uri())

    with NamedTemporaryFile("w", prefix="batonpass-", suffix=".html", encoding="utf-8") as opener:
        serve_ledger(ServerPlace(port=port), (), ready, repositories=[Path.cwd()])
    tell("stopped")


def _has_screen() -> bool:
    """Return whether a browser would have a window, and not take over this terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
