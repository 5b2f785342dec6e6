"""`batonpass notify`: run your command whenever something waits for a person, until a signal."""

import click

from batonpass.cli.input.ledger_access import opened_relay, settings
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.input.stop_signals import stopped_by_signals
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import say_json, tell
from batonpass.config import find_policy_file
from batonpass.dispatch.notifier import Notifier
from batonpass.policy.notify_table import read_notify


@click.command()
@click.option(
    "--once", is_flag=True, help="Deliver the waiting notices and exit; the exit code is 1 if a delivery failed."
)
@ledger_and_json
def command(*, once: bool, as_json: bool) -> None:
    """Run your command for everything that is held or asked, until a signal.

    The command is in batonpass.toml, under [notify]. It gets the notice as JSON on its standard input. Each notice is
    delivered at least once, also after a crash; a failed delivery is tried again later.
    """
    found = settings()
    file = find_policy_file(found.policy)
    chosen = None if file is None else read_notify(file)
    if chosen is None:
        raise click.UsageError('nothing says whom to notify; write [notify] with command = ["..."] into batonpass.toml')
    if found.home is None:
        raise click.UsageError("a ledger in memory cannot remember which deliveries were made")
    with opened_relay() as relay:
        notifier = Notifier(relay, chosen, found.home)
        if once:
            delivered, failed = notifier.notify_all()
            _report(delivered, failed, as_json=as_json)
            raise SystemExit(NO if failed else 0)
        with stopped_by_signals() as stop:
            notifier.run_until(stop, told=lambda delivered, failed: _report(delivered, failed, as_json=as_json))


def _report(delivered: int, failed: int, *, as_json: bool) -> None:
    if as_json:
        say_json({"delivered": delivered, "failed": failed}, line=True)
    else:
        tell(f"{delivered} delivered, {failed} to be tried again")
