"""`batonpass key`: which relays may record in this ledger."""

from typing import TYPE_CHECKING

import click

from batonpass.audit.meant_ids import get_key
from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import checked, json_option, ledger_option
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table, tell
from batonpass.errors import KeyFailedError, StoreReadOnlyError
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import RELAY, PublicKey, RelayId, require_id
from batonpass.model.ledger.key import Key, KeyStatus
from batonpass.model.ledger.projection import key_id

if TYPE_CHECKING:
    from batonpass.relay import Relay

_COLOURS = {KeyStatus.ACTIVE: "green", KeyStatus.RETIRED: "yellow", KeyStatus.REVOKED: "red"}


@click.group()
def command() -> None:
    """List and change which relays may record: the root key says so, and every receipt is signed by one."""


@command.command("list")
@json_option
@ledger_option
def list_(*, as_json: bool) -> None:
    """List the root key and the relays' keys, and say who this relay is."""
    with opened_relay() as relay:
        keys = relay.admin.keys()
        own, why_not = _own(relay)
    enrolled = own is not None and any(key.public_key == own[1] and key.status is KeyStatus.ACTIVE for key in keys)
    if as_json:
        here = None if own is None else {"relay": own[0], "public_key": own[1], "enrolled": enrolled}
        say_json({"keys": [_facts(key) for key in keys], "here": here})
        return
    table(
        [
            [key.role, _status(key), key.id[:16], key.relay or key.principal or "the ledger's", _mark(key, own)]
            for key in keys
        ],
        header=("role", "status", "key", "relay", ""),
    )
    if own is None:
        tell(f"this relay's own key cannot be told: {why_not}")
        return
    say()
    say("this relay  ", own[0])
    say("public key  ", own[1])
    if not enrolled:
        tell("it is not enrolled here; where the root key is, run:")
        tell(f"  batonpass key enroll {own[0]} {own[1]}")


@command.command()
@click.argument("relay", callback=checked(lambda given: require_id("relay", given, RELAY)))
@click.argument("public_key", callback=checked(lambda given: require_digest("public_key", given)))
@ledger_option
def enroll(relay: str, public_key: str) -> None:
    """Let another relay record here. Needs the root key; `batonpass key list` there prints both arguments."""
    with opened_relay() as here:
        here.admin.enroll(RelayId(relay), PublicKey(public_key))
    tell(f"enrolled {relay} with key {key_id(PublicKey(public_key))[:16]}")


@command.command()
@ledger_option
def rotate() -> None:
    """Go on under a new key. Needs the root key; what the old key signed stays good."""
    with opened_relay() as relay:
        fresh = relay.admin.rotate()
    tell(f"this relay signs with key {key_id(fresh)[:16]} from now on")


@command.command()
@click.argument("key")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it is kept.")
@ledger_option
def revoke(key: str, reason: str) -> None:
    """Stop a relay's key from recording, from now on. Needs the root key.

    KEY is the first or last characters of a key, or the last characters of its relay.
    """
    with opened_relay() as relay:
        found = get_key(relay.admin.keys(), key)
        own, _ = _own(relay)
        relay.admin.revoke(found, reason=reason)
    tell(f"revoked key {found.id[:16]} of {found.relay}")
    if own is not None and own[1] == found.public_key:
        tell("that was this relay's own key: nothing more can be recorded from here until another one is enrolled")


def _own(relay: "Relay") -> tuple[tuple[RelayId, PublicKey] | None, str]:
    """Return who this relay is, or why that cannot be told."""
    try:
        return relay.admin.identity(), ""
    except (KeyFailedError, StoreReadOnlyError) as error:
        return None, str(error)


def _status(key: Key) -> Painted:
    return paint(key.status, _COLOURS[key.status])


def _mark(key: Key, own: tuple[RelayId, PublicKey] | None) -> str:
    return "← here" if own is not None and key.public_key == own[1] else ""


def _facts(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "role": key.role,
        "status": key.status,
        "relay": key.relay,
        "principal": key.principal,
        "public_key": key.public_key,
    }
