"""`batonpass approver`: manage the keys of people who approve."""

from typing import TYPE_CHECKING

import click

from batonpass.cli.input.ledger_access import opened_relay
from batonpass.cli.input.options import checked, is_person, ledger_and_json, ledger_option, reason_option
from batonpass.cli.input.passphrase import new_passphrase, unlock
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.errors import InvalidValueError, KeyMissingError, KeyRefusedError
from batonpass.handoff.runtime.membership import has_one
from batonpass.model.base.ids import PrincipalId, PublicKey, is_user, require_principal
from batonpass.model.base.passkey import find_passkey, require_approver_key
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
    """Return a principal; a bare name is a user's."""
    named = require_principal("name", given if ":" in given else f"user:{given}")
    if named.startswith("agent:"):
        raise InvalidValueError("name", f"{named} is an agent, and agents cannot approve")
    return named


def _person(given: str) -> str:
    """Return a person. Others may have keys from older versions, which can still be listed and revoked."""
    if not is_user(named := _principal(given)):
        raise InvalidValueError("name", f"{named} is not a person, and only people can approve")
    return named


@click.group()
def command() -> None:
    """Manage the keys of people who approve. `batonpass handoff approve` asks for their passphrase."""


@command.command()
@click.argument("name", callback=checked(_person))
@ledger_option
def add(name: str) -> None:
    """Make a key for a person and enrol it here. Needs a terminal and the root key.

    NAME is a user's name or a principal, such as user:ana. The key is kept in $XDG_CONFIG_HOME/batonpass/approvers,
    in a file that is encrypted with the passphrase; a key that is already there is enrolled too. If the root key is on
    another machine, the command to run there is printed.
    """
    if not is_person():
        raise click.UsageError("a passphrase is read from a terminal; run this in one")
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
@click.argument("public_key", callback=checked(lambda given: require_approver_key("public_key", PublicKey(given))))
@ledger_option
def enroll(name: str, public_key: str) -> None:
    """Enrol a person's key. Needs the root key.

    `batonpass approver add` elsewhere prints both arguments; so does the page, to somebody who makes a passkey there.
    """
    with opened_relay() as relay:
        relay.admin.enroll_approver(name, PublicKey(public_key))
    tell(f"enrolled {name} with key {key_id(PublicKey(public_key))[:16]}")


@command.command("list")
@ledger_and_json
def list_(*, as_json: bool) -> None:
    """List the keys of approvers, and which of them are on this machine."""
    with opened_relay() as relay:
        keys = _approvers(relay)
    here = {key.id for key in keys if _is_here(key)}
    if as_json:
        names = ("principal", "id", "status", "public_key")
        say_json([{name: getattr(key, name) for name in names} | {"here": key.id in here} for key in keys])
        return
    table(
        [
            [
                str(key.principal),
                paint(key.status, _COLOURS[key.status]),
                key.id[:16],
                "← here" if key.id in here else _site(key),
            ]
            for key in keys
        ],
        header=("approver", "status", "key", "") if keys else (),
    )
    if not keys:
        tell("no key is enrolled, so every approval is unproven; `batonpass approver add NAME` makes a key")


@command.command()
@click.argument("name", callback=checked(_principal))
@reason_option()
@ledger_option
def revoke(name: str, reason: str) -> None:
    """Revoke a person's key from now on. Needs the root key; earlier signatures stay valid."""
    with opened_relay() as relay:
        revoked = relay.admin.revoke_approver(name, reason=reason)
    tell(f"revoked key {revoked.id[:16]} of {name}")


def find_own_key(relay: "Relay", principal: str) -> tuple[Key | None, ApproverFile | None]:
    """Return a principal's active key in this ledger and its file on this machine; None for either that is missing."""
    for key in _approvers(relay):
        if key.principal == principal and key.status is KeyStatus.ACTIVE:
            return key, find_approver(find_approvers_home(), key.id)
    return None, None


def _approvers(relay: "Relay") -> list[Key]:
    known = relay.admin.keys()
    return [key for key in known if key.role is KeyRole.APPROVER]


def _kept(principal: PrincipalId, known: list[Key]) -> ApproverFile | None:
    """Return a key that is on this machine and not in this ledger, once its passphrase was typed."""
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


def _site(key: Key) -> str:
    passkey = find_passkey(key.public_key)
    return "" if passkey is None else f"a passkey at {passkey.site}"


def _is_here(key: Key) -> bool:
    return find_approver(find_approvers_home(), key.id) is not None
