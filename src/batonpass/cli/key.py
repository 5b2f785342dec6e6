"""`batonpass key`: manage the keys of the relays that may record in this ledger."""

from typing import TYPE_CHECKING

import click

from batonpass.audit.meant_ids import get_key
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.input.options import checked, ledger_and_json, ledger_option, reason_option
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table, tell
from batonpass.errors import KeyFailedError, StoreReadOnlyError
from batonpass.ledger.note import verifier_key
from batonpass.ledger.seals import origin_of
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import RELAY, PublicKey, RelayId, require_id
from batonpass.model.ledger.key import Key, KeyStatus
from batonpass.model.ledger.projection import key_id

if TYPE_CHECKING:
    from batonpass.relay import Relay

_COLOURS = {KeyStatus.ACTIVE: "green", KeyStatus.RETIRED: "yellow", KeyStatus.REVOKED: "red"}


@click.group()
def command() -> None:
    """Manage the keys of relays. The root key enrols them, and each receipt is signed by one of them."""


@command.command("list", short_help="List the keys of relays.")
@ledger_and_json
def list_(*, as_json: bool) -> None:
    """List the root key and the keys of relays, and show this relay's own key."""
    with opened_relay() as relay:
        keys = relay.admin.keys()
        own, why_not = _own(relay)
        with viewed(relay.store) as view:
            origin = origin_of(view.info().id)
    enrolled = own is not None and any(key.public_key == own[1] and key.status is KeyStatus.ACTIVE for key in keys)
    if as_json:
        here = (
            None
            if own is None
            else {
                "relay": own[0],
                "public_key": own[1],
                "seal_key": verifier_key(origin, bytes.fromhex(own[1])),
                "enrolled": enrolled,
            }
        )
        say_json({"keys": keys, "here": here})
        return
    table(
        [
            [key.role, _status(key), key.id[:16], key.relay or key.principal or "the ledger's", _mark(key, own)]
            for key in keys
        ],
        header=("role", "status", "key", "relay", ""),
    )
    if own is None:
        tell(f"this relay's own key cannot be read: {why_not}")
        return
    say()
    say("this relay  ", own[0])
    say("public key  ", own[1])
    say("seal key    ", verifier_key(origin, bytes.fromhex(own[1])))
    if not enrolled:
        tell("this key is not enrolled here; where the root key is, run:")
        tell(f"  batonpass key enroll {own[0]} {own[1]}")


@command.command()
@click.argument("relay", callback=checked(lambda given: require_id("relay", given, RELAY)))
@click.argument("public_key", callback=checked(lambda given: require_digest("public_key", given)))
@ledger_option
def enroll(relay: str, public_key: str) -> None:
    """Enrol another relay. Needs the root key; `batonpass key list` on the other machine prints both arguments."""
    with opened_relay() as here:
        here.admin.enroll(RelayId(relay), PublicKey(public_key))
    tell(f"enrolled {relay} with key {key_id(PublicKey(public_key))[:16]}")


@command.command()
@ledger_option
def rotate() -> None:
    """Replace this relay's key by a new one. Needs the root key; old signatures stay valid."""
    with opened_relay() as relay:
        fresh = relay.admin.rotate()
    tell(f"this relay signs with key {key_id(fresh)[:16]} from now on")


@command.command()
@click.argument("key")
@reason_option()
@ledger_option
def revoke(key: str, reason: str) -> None:
    """Revoke the key of a relay: it can record nothing from now on. Needs the root key.

    KEY is the first or last characters of a key, or the last characters of its relay.
    """
    with opened_relay() as relay:
        found = get_key(relay.admin.keys(), key)
        own, _ = _own(relay)
        relay.admin.revoke(found, reason=reason)
    tell(f"revoked key {found.id[:16]} of {found.relay}")
    if own is not None and own[1] == found.public_key:
        tell("this was the relay's own key: nothing can be recorded from here until another key is enrolled")


def _own(relay: "Relay") -> tuple[tuple[RelayId, PublicKey] | None, str]:
    """Return this relay's identity, or the reason why it cannot be read."""
    try:
        return relay.admin.identity(), ""
    except (KeyFailedError, StoreReadOnlyError) as error:
        return None, str(error)


def _status(key: Key) -> Painted:
    return paint(key.status, _COLOURS[key.status])


def _mark(key: Key, own: tuple[RelayId, PublicKey] | None) -> str:
    return "← here" if own is not None and key.public_key == own[1] else ""
