"""`batonpass token`: add, list and revoke the tokens with which somebody comes in through `batonpass serve`."""

from datetime import UTC, datetime, timedelta
from typing import Final

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.ledger_access import opened_relay, opened_view
from batonpass.cli.input.options import (
    checked,
    json_option,
    ledger_and_json,
    ledger_option,
    principal_option,
    reason_option,
)
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import minute
from batonpass.errors import InvalidValueError
from batonpass.model.base.durations import read_duration
from batonpass.model.base.ids import require_agent, require_principal
from batonpass.model.base.kinds import AccessRole
from batonpass.records.access_token import TokenRecord, find_tokens
from batonpass.records.json_shapes import token_shape

_LASTS: Final = "30d"


def _principal(given: str) -> str:
    """Return a principal; a bare name is a user's."""
    return require_principal("principal", given if ":" in given else f"user:{given}")


def _duration(_: click.Context, __: click.Parameter, given: str) -> timedelta:
    try:
        return read_duration("lasts", given)
    except InvalidValueError as error:
        raise click.BadParameter(error.problem) from None


@click.group()
def command() -> None:
    """Add, list and revoke the tokens for `batonpass serve`. A token says who comes in, and what they may do."""


@command.command()
@click.argument("principal", callback=checked(_principal))
@click.option(
    "--role",
    type=click.Choice([role.value for role in AccessRole]),
    required=True,
    help="agent: its own runs. operator: decides. auditor: reads. admin: everything.",
)
@click.option("--agent", "agents", metavar="NAME", multiple=True, help="Only as this agent. May be repeated.")
@click.option("--may", metavar="PERMIT", multiple=True, help="The most that its runs may use, such as write:src/**.")
@click.option("--may-delegate", metavar="PERMIT", multiple=True, help="The most that its runs may delegate.")
@click.option(
    "--lasts", metavar="DURATION", default=_LASTS, show_default=True, callback=_duration, help="How long it is valid."
)
@principal_option("Who adds it. The name is recorded as given, not proven.")
@ledger_and_json
def add(
    principal: str,
    *,
    role: str,
    agents: tuple[str, ...],
    may: tuple[str, ...],
    may_delegate: tuple[str, ...],
    lasts: timedelta,
    by: str,
    as_json: bool,
) -> None:
    """Add a token for a principal, and print it once.

    PRINCIPAL is a user's name or a principal, such as service:nightly. Only a digest of the token is kept. A token
    with the role agent needs --may or --may-delegate: every run that is started with it is held to that.
    """
    for agent in agents:
        require_agent("agent", agent)
    with opened_relay(create=True) as relay:
        issued = relay.admin.add_token(
            principal, role, by=by, lasts=lasts, agents=agents, may=may, may_delegate=may_delegate
        )
        if as_json:
            with relay.store.view() as view:
                known = next(one for one in find_tokens(view) if one.id == issued.id)
            say_json({**token_shape(known, datetime.now(UTC)), "token": issued.text})
            return
    tell(f"{role} token {ending(issued.id)} for {principal}; it is shown this once:")
    say(issued.text)


@command.command("list")
@ledger_and_json
def list_(*, as_json: bool) -> None:
    """List all tokens, the latest first."""
    now = datetime.now(UTC)
    with opened_view() as view:
        known = list(find_tokens(view))
    if as_json:
        say_json([token_shape(one, now) for one in known])
        return
    table(
        [
            [
                ending(one.id),
                one.principal,
                one.role,
                ", ".join(one.agents) or "any",
                _state(one, now),
                minute(one.until),
            ]
            for one in known
        ],
        header=("token", "principal", "role", "agents", "state", "until") if known else (),
    )
    if not known:
        tell("there is no token; `batonpass token add NAME --role operator` makes one")


@command.command()
@click.argument("token", metavar="ID")
@reason_option()
@principal_option("Who revokes it. The name is recorded as given, not proven.")
@ledger_option
@json_option
def revoke(token: str, *, reason: str, by: str, as_json: bool) -> None:
    """Revoke a token from now on, at every server of this ledger.

    ID is the end of its id, as `batonpass token list` shows it.
    """
    with opened_relay() as relay:
        revoked = relay.admin.revoke_token(token, by=by, reason=reason)
    if as_json:
        say_json({"id": revoked.id, "revoked": True})
    else:
        tell(f"revoked token {ending(revoked.id)} of {revoked.principal}")


def _state(one: TokenRecord, now: datetime) -> str:
    if one.revoked_at is not None:
        return paint("revoked", "red")
    if one.is_ceiling_lost:
        return paint("erased", "red")
    return paint("valid", "green") if one.is_valid(now) else paint("expired", "yellow")
