"""The record as a whole."""

import click

from batonpass.cli.options import Session, common
from batonpass.errors import VerificationError
from batonpass.place import Place
from batonpass.signing.keyfile import read_or_make_secret
from batonpass.signing.keys import KeyPair
from batonpass.verify.verifier import verify as verify_store
from batonpass.verify.words import narrate_evidence, narrate_not_run


@click.group()
def ledger() -> None:
    """Verify the record as a whole."""


@ledger.command()
@click.option("--root-key", metavar="HEX", help="The ledger's root key, as you noted it elsewhere.")
@common
def verify(session: Session, *, root_key: str | None) -> None:
    """Verify every receipt, and name the first thing that is wrong.

    It ends with 0 if all holds, and with 1 if something is wrong.
    """
    place = session.find_place()
    try:
        with session.reading() as store:
            evidence = verify_store(store, root_key=root_key, relay_key=_own_relay_key(place))
    except VerificationError as fault:
        detail = f"{fault}; keep the ledger as it is, and compare it with a backup"
        raise VerificationError(detail, code=fault.code, facts=fault.facts) from None
    screen = session.screen
    if screen.is_json:
        screen.json(evidence)
    elif not screen.is_quiet:
        screen.lines(narrate_evidence(evidence))
        for words in narrate_not_run(evidence):
            screen.note(words)


def _own_relay_key(place: Place) -> str | None:
    """Return the public key of this machine's relay: a ledger that was put in the place of ours does not know it."""
    path = place.directory / "relay.key"
    if not path.exists():
        return None
    return KeyPair(read_or_make_secret(path, _no_entropy)).public


def _no_entropy(_: int) -> bytes:
    raise FileNotFoundError("the relay's key vanished while it was read")
