"""The ledger that `batonpass init` sets up for another program."""

import click

from batonpass.cli.output.terminal import tell
from batonpass.config import Settings
from batonpass.relay import Relay, recording_of


def make_ledger(found: Settings) -> None:
    """Create the ledger if it does not exist, and say so."""
    if found.home is None:
        raise click.UsageError("a ledger in memory would end with each event; use a file or PostgreSQL")
    with Relay.open(found.ledger, home=found.home) as relay:
        new = not relay.store.founded()
        recording_of(relay)  # founds the ledger, or fails now if this relay may not record here
    if new:
        tell(f"created a ledger in {found.home}, which git ignores")
