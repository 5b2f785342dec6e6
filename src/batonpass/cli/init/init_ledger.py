"""What every `batonpass init` does about the ledger that another program is to record in."""

from pathlib import Path
from urllib.parse import urlsplit

import click

from batonpass.cli.input.options import given_ledger
from batonpass.cli.output.terminal import tell
from batonpass.config import Settings
from batonpass.relay import Relay, recording_of
from batonpass.store.factory import MEMORY


def ledger_word() -> str | None:
    """Return the ledger that was asked for, as it can stand in another program's settings."""
    given = given_ledger()
    if given is None:
        return None
    if urlsplit(given).password is not None:
        raise click.UsageError("a hook would show the password in --ledger; set BATONPASS_LEDGER instead")
    return given if "://" in given or given == MEMORY else str(Path(given).absolute())


def make_ledger(found: Settings) -> None:
    """Make the ledger if it is not there, and say so."""
    if found.home is None:
        raise click.UsageError("a ledger in memory ends with each event; name one in a file or on PostgreSQL")
    with Relay.open(found.ledger, home=found.home) as relay:
        new = not relay.store.founded()
        _ = recording_of(relay)  # founds it, or says that this relay may not record here, before any hook does
    if new:
        tell(f"made a ledger in {found.home}, which git does not see")
