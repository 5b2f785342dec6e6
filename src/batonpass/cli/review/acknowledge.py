"""`batonpass acknowledge`: a person has seen a finding and leaves it as it is."""

import click

from batonpass.audit.short_ids import LAST
from batonpass.cli.input.id_types import RUN_ID
from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import by_option, ledger_and_json, reason_option
from batonpass.cli.output.terminal import say, say_json
from batonpass.model.base.visible import visible
from batonpass.review.finding import finding_shape


@click.command()
@click.argument("finding", metavar="FINDING")
@click.option("--run", metavar="RUN", type=RUN_ID, default=LAST, show_default=True, help="A run of the tree it is in.")
@by_option
@reason_option()
@ledger_and_json
def command(finding: str, *, run: str, by: str, reason: str, as_json: bool) -> None:
    """Leave a finding of `batonpass review` as it is: it stays on record, and stops no pipeline any more.

    FINDING is the beginning or the end of its key, or its kind if the tree has one of it. Only a person may do this.
    If the evidence changes, it is a new finding.
    """
    with opened_relay() as relay:
        found = relay.acknowledge(run, finding, by=by, reason=reason)
    if as_json:
        say_json({**finding_shape(found), "acknowledged": {"by": by, "reason": reason}})
        return
    say(f"{found.kind.code} {found.key} · acknowledged by {by} (unproven): {visible(reason)}")
