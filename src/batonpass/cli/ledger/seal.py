"""`batonpass ledger seal` and `extends`: make a seal, and compare two without the ledger."""

from pathlib import Path

import click

from batonpass.audit.proof_check import read_keys, verify_growth
from batonpass.cli.input.ledger_access import opened_relay, settings, viewed
from batonpass.cli.input.options import (
    json_option,
    key_option,
    ledger_and_json,
    output_option,
    read_text,
    written,
)
from batonpass.cli.ledger.verification import read_seal
from batonpass.cli.output.terminal import paint, say, say_json, tell
from batonpass.cli.output.units import counted
from batonpass.ledger.seal_growth import SealGrowth, format_growth, parse_growth
from batonpass.ledger.seals import growth_since
from batonpass.store.factory import SQLITE


@click.command()
@output_option
@click.option(
    "--extends",
    "old",
    metavar="OLD",
    type=click.Path(path_type=Path),
    help="Print it with the proof that it covers all that the seal in OLD covers.",
)
@ledger_and_json
def seal(output: Path | None, old: Path | None, *, as_json: bool) -> None:
    """Seal everything recorded so far.

    Prints the seal, a signed note. Keep it where nobody who writes to this ledger can change it.
    """
    before = None if old is None else read_seal(old)
    with opened_relay(create=is_on_server()) as relay:
        made = relay.admin.seal()
        growth: SealGrowth | None = None
        if before is not None:
            with viewed(relay.store) as view:
                growth = growth_since(view, before, made)
    if output is not None or not as_json:
        with written(output) as file:
            file.write(made.note if growth is None else format_growth(growth))
    if as_json:
        where = None if output is None else str(output)
        proof = None if growth is None else format_growth(growth)
        say_json(
            {
                "size": made.size,
                "previous": made.previous,
                "root": made.root,
                "note": made.note,
                "proof": proof,
                "file": where,
            }
        )
        return
    tell(f"sealed {counted(made.size, 'receipt')}; keep the seal where nobody who writes to this ledger can change it")


@click.command()
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("proof", metavar="PROOF", type=click.Path(path_type=Path))
@key_option
@json_option
def extends(old: Path, proof: Path, keys: tuple[str, ...], *, as_json: bool) -> None:
    """Verify that a newer seal covers all that an older one covers. Needs no ledger.

    OLD is the older seal, PROOF the output of `ledger seal --extends OLD`. The keys are those of the relays that made
    the seals; get them from somebody whom you trust.
    """
    first, last = verify_growth(read_seal(old), parse_growth(read_text(proof)), read_keys(keys))
    if as_json:
        say_json(
            {
                "origin": last.origin,
                "old": {"size": first.size, "root": first.root.hex()},
                "new": {"size": last.size, "root": last.root.hex()},
            }
        )
        return
    say(
        paint("proven", colour="green"),
        f": the seal of {counted(last.size, 'receipt')} covers the {first.size:,} of the older one, unchanged",
    )


def is_on_server() -> bool:
    """Return whether the ledger is on a server: sealing founds an empty one, and the root key stays on this machine."""
    return not settings().ledger.startswith(SQLITE)
