"""`batonpass endorse`: a person vouches for a file that a tainted run wrote."""

import os

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import by_option, ledger_and_json, reason_option
from batonpass.cli.output.terminal import say, say_json, tell
from batonpass.cli.output.units import moment
from batonpass.model.base.visible import visible
from batonpass.records.json_shapes import exact


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@by_option
@reason_option()
@ledger_and_json
def command(path: str, *, by: str, reason: str, as_json: bool) -> None:
    """Vouch for the current content of FILE, so that it no longer taints the runs that read it.

    The file was written by a run that had read content from outside. Only a person may endorse it, and later changes
    are not covered. To endorse the outside content itself, use `batonpass handoff endorse`.
    """
    with opened_relay() as relay:
        left = relay.endorse_file(os.path.abspath(path), by=by, reason=reason)  # noqa: PTH100 - a link is followed there
    if as_json:
        written = [
            {"call": one.call, "run": one.run, "at": exact(one.at), "sources": list(one.sources), "holds": one.holds}
            for one in left
        ]
        say_json({"file": left[0].path, "by": by, "written": written})
        return
    say(f"{visible(left[0].path)} · endorsed by {by} (unproven)")
    for one in left:
        sources = ", ".join(f"{source.partition('_')[0]} {ending(source)}" for source in one.sources)
        tell(f"  written by call {ending(one.call)} · {moment(one.at)} · from outside: {sources}")
