"""The ledger that `batonpass init` sets up for another program."""

from pathlib import Path
from urllib.parse import urlsplit

import click

from batonpass.cli.input.options import given_ledger
from batonpass.cli.output.terminal import tell
from batonpass.config import Settings
from batonpass.relay import Relay
from batonpass.store.factory import MEMORY


def ledger_word() -> str | None:
    """Return the value of `--ledger` as it can be written into another program's settings."""
    given = given_ledger()
    if given is None:
        return None
    if urlsplit(given).password is not None:
        raise click.UsageError("a hook would show the password in --ledger; set BATONPASS_LEDGER instead")
    return given if "://" in given or given == MEMORY else str(Path(given).absolute())


def make_ledger(found: Settings) -> None:
    """Create the ledger if it does not exist, and say so."""
    if found.home is None:
        raise click.UsageError("a ledger in memory would end with each event; use a file or PostgreSQL")
    with Relay.open(found.ledger, home=found.home) as relay:
        new = not relay.store.founded()
        _ = relay.recording  # founds the ledger, or fails now if this relay may not record here
    if new:
        tell(f"created a ledger in {found.home}, which git ignores")
