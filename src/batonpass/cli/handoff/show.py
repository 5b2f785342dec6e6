"""`batonpass handoff show`: one handoff on one screen, or the proof that its baton arrived unchanged."""

import click

from batonpass.accounts.handoff.account import read_account
from batonpass.audit.meant_ids import get_handoff
from batonpass.cli.handoff.handoff_screen import compose
from batonpass.cli.input.id_types import HANDOFF_ID
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.exits import NO
from batonpass.cli.output.sheet import room
from batonpass.cli.output.terminal import say, say_json
from batonpass.model.ledger.run import Handoff
from batonpass.store.port import LedgerView


@click.command()
@click.argument("handoff", metavar="ID", type=HANDOFF_ID)
@click.option("--proof", is_flag=True, help="Prove that intent, constraints and exclusions arrived unchanged.")
@ledger_and_json
def show(handoff: str, *, proof: bool, as_json: bool) -> None:
    """Show a handoff on one screen.

    Shows the agent, the chain up to the human, the exact task, the grant, the outcome, and open questions and work.

    With --proof, every hop from the root is checked by receipts alone; exits with 1 if something was lost.
    """
    with opened_view() as view:
        found = get_handoff(view, handoff)
        if proof:
            _prove(view, found, as_json=as_json)
            return
        account = read_account(view, found)
    if as_json:
        from batonpass.cli.handoff.handoff_facts import account_facts  # noqa: PLC0415 - the screen does not need it

        say_json(account_facts(account))
        return
    for line in compose(account, columns=room()):
        say(line)


def _prove(view: LedgerView, handoff: Handoff, *, as_json: bool) -> None:
    """Print the proof, hop by hop; exit with 1 if something was lost."""
    from batonpass.audit.carriage import prove_carriage  # noqa: PLC0415 - few ask for a proof
    from batonpass.cli.handoff.carriage_proof import carriage_facts, say_carriage  # noqa: PLC0415 - as above

    carriage = prove_carriage(view, handoff)
    if as_json:
        say_json(carriage_facts(carriage))
    else:
        say_carriage(carriage)
    if not carriage.binds:
        click.get_current_context().exit(NO)
