"""`batonpass approver`: whose keys prove what they decided."""

from typing import TYPE_CHECKING

import click

from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import checked, is_person, json_option, ledger_option
from batonpass.cli.input.passphrase import new_passphrase, unlock
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.errors import InvalidValueError, KeyMissingError, KeyRefusedError
from batonpass.handoff.runtime.membership import has_one
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import PrincipalId, PublicKey, is_user, require_principal
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.projection import key_id
from batonpass.signing.approver_key import (
    ApproverFile,
    find_approver,
    find_approvers,
    find_approvers_home,
    make_approver,
)

if TYPE_CHECKING:
    from batonpass.relay import Relay

_COLOURS = {KeyStatus.ACTIVE: "green", KeyStatus.RETIRED: "yellow", KeyStatus.REVOKED: "red"}


def _principal(given: str) -> str:
    """Return who is meant: a bare name is a user's."""
    named = require_principal("name", given if ":" in given else f"user:{given}")
    if named.startswith("agent:"):
        raise InvalidValueError("name", f"{named} is an agent, and no agent approves")
    return named


def _person(given: str) -> str:
    """Return which person is meant. Whoever else has a key from long ago can still be listed and revoked."""
    if not is_user(named := _principal(given)):
        raise InvalidValueError("name", f"{named} is no person, and nobody else approves")
    return named


@click.group()
def command() -> None:
    """List and change whose keys prove a decision: `batonpass handoff approve` asks for their passphrase."""


@command.command()
@click.argument("name", callback=checked(_person))
@ledger_option
def add(name: str) -> None:
    """Make a key for a person and enrol it here. Needs a terminal, and the root key.

    NAME is a user's name or a principal, such as user:ana. The key is kept in $XDG_CONFIG_HOME/batonpass/approvers,
    in a file that only the passphrase opens; one that lies there already is enrolled here as well. Where the root key
    is elsewhere, what to run there is printed.
    """
    if not is_person():
        raise click.UsageError("a passphrase is read from a terminal; run this on one")
    principal = PrincipalId(name)
    with opened_relay() as relay:
        known = _approvers(relay)
        if any(key.principal == principal and key.status is KeyStatus.ACTIVE for key in known):
            raise KeyRefusedError(has_one(principal))
        file = _kept(principal, known) or _made(principal)
        try:
            relay.admin.enroll_approver(principal, file.public_key)
        except KeyMissingError as missing:
            tell(str(missing))
            tell(f"{principal} is not enrolled yet; where the root key is, run:")
            tell(f"  batonpass approver enroll {principal} {file.public_key}")
            click.get_current_context().exit(NO)
    tell(f"enrolled {principal} with key {file.key[:16]}")


@command.command()
@click.argument("name", callback=checked(_principal))
@click.argument("public_key", callback=checked(lambda given: require_digest("public_key", given)))
@ledger_option
def enroll(name: str, public_key: str) -> None:
    """Say whose decisions a key signs. Needs the root key; `batonpass approver add` elsewhere prints both arguments."""
    with opened_relay() as relay:
        relay.admin.enroll_approver(name, PublicKey(public_key))
    tell(f"enrolled {name} with key {key_id(PublicKey(public_key))[:16]}")


@command.command("list")
@json_option
@ledger_option
def list_(*, as_json: bool) -> None:
    """List whose keys prove decisions here, and which of them lie on this machine."""
    with opened_relay() as relay:
        keys = _approvers(relay)
    here = {key.id for key in keys if _is_here(key)}
    if as_json:
        say_json([_facts(key, here=key.id in here) for key in keys])
        return
    table(
        [
            [
                str(key.principal),
                paint(key.status, _COLOURS[key.status]),
                key.id[:16],
                "← here" if key.id in here else "",
            ]
            for key in keys
        ],
        header=("approver", "status", "key", "") if keys else (),
    )
    if not keys:
        tell("nobody's key is enrolled, so every approval is unproven; `batonpass approver add NAME` makes one")


@command.command()
@click.argument("name", callback=checked(_principal))
@click.option("--reason", metavar="TEXT", required=True, help="Why; it is kept.")
@ledger_option
def revoke(name: str, reason: str) -> None:
    """Let a person's key prove nothing from now on. Needs the root key; what it signed before stays good."""
    with opened_relay() as relay:
        revoked = relay.admin.revoke_approver(name, reason=reason)
    tell(f"revoked key {revoked.id[:16]} of {name}")


def find_own_key(relay: "Relay", principal: str) -> tuple[Key | None, ApproverFile | None]:
    """Return somebody's active key in this ledger, and its file on this machine, as far as there are any."""
    for key in _approvers(relay):
        if key.principal == principal and key.status is KeyStatus.ACTIVE:
            return key, find_approver(find_approvers_home(), key.id)
    return None, None


def _approvers(relay: "Relay") -> list[Key]:
    known = relay.admin.keys()
    return [key for key in known if key.role is KeyRole.APPROVER]


def _kept(principal: PrincipalId, known: list[Key]) -> ApproverFile | None:
    """Return a key that lies here and is not known in this ledger, once its passphrase was typed."""
    enrolled = {key.id for key in known}
    for file in find_approvers(find_approvers_home(), principal):
        if file.key not in enrolled:
            say(f"{principal} has a key on this machine, {file.key[:16]}")
            unlock(file)
            return file
    return None


def _made(principal: PrincipalId) -> ApproverFile:
    made = make_approver(find_approvers_home(), principal, new_passphrase(principal))
    tell(f"made a key for {principal} in {made.path}")
    return made


def _is_here(key: Key) -> bool:
    return find_approver(find_approvers_home(), key.id) is not None


def _facts(key: Key, *, here: bool) -> dict[str, object]:
    return {
        "principal": key.principal,
        "id": key.id,
        "status": key.status,
        "public_key": key.public_key,
        "here": here,
    }
