"""`batonpass webhook`: send receipts to other programs, as signed CloudEvents."""

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.ledger_access import opened_relay, opened_view, settings
from batonpass.cli.input.options import (
    json_option,
    ledger_and_json,
    ledger_option,
    principal_option,
    reason_option,
)
from batonpass.cli.input.stop_signals import stopped_by_signals
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import minute
from batonpass.config import find_policy_file
from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.dispatch.webhook_sender import WebhookSender
from batonpass.dispatch.webhooks import Webhooks, place_of
from batonpass.model.base.visible import visible
from batonpass.policy.egress_table import read_egress
from batonpass.records.json_shapes import webhook_shape
from batonpass.records.recipients.webhook import WebhookRecord, find_webhooks
from batonpass.relay import Relay

_BY = "Who does it. The name is recorded as given, not proven."


def _webhooks(relay: Relay) -> Webhooks:
    return Webhooks(relay, Egress(EgressRule(read_egress(find_policy_file(settings().policy)))))


@click.group()
def command() -> None:
    """Send receipts to other programs, as signed CloudEvents, in order, at least once each.

    `batonpass serve` delivers them, and so does `batonpass webhook deliver`.
    """


@command.command()
@click.argument("url", metavar="URL")
@click.option(
    "--kind", "kinds", metavar="KIND", multiple=True, help="Only these receipts: tool.held, or all of handoff."
)
@principal_option(_BY)
@ledger_and_json
def add(url: str, *, kinds: tuple[str, ...], by: str, as_json: bool) -> None:
    """Add a webhook, and print its secret once.

    It is told of everything that is recorded from now on. URL begins with https and leads to a public address, unless
    batonpass.toml lists the place under [egress].
    """
    with opened_relay(create=True) as relay:
        issued = _webhooks(relay).add(url, by=by, kinds=kinds)
    if as_json:
        say_json({"id": issued.id, "secret": issued.secret.reveal()})
        return
    tell(f"webhook {ending(issued.id)} at {place_of(url)}; its secret is shown this once:")
    say(issued.secret.reveal())


@command.command("list")
@ledger_and_json
def list_(*, as_json: bool) -> None:
    """List all webhooks and their state."""
    with opened_view() as view:
        known = [one for one in find_webhooks(view) if as_json or one.state != "removed"]
    if as_json:
        say_json([webhook_shape(one, place_of(one.url)) for one in known])
        return
    table(
        [
            [
                ending(one.id),
                place_of(one.url) or "erased",
                ", ".join(one.kinds) or "all",
                _state(one),
                minute(one.added_at),
            ]
            for one in known
        ],
        header=("webhook", "place", "kinds", "state", "added") if known else (),
    )
    for one in known:
        if one.state == "failed":
            tell(f"{ending(one.id)} was given up: {visible(one.reason or '')}")
            tell(f"  `batonpass webhook resume {ending(one.id)}` tells it everything since")
    if not known:
        tell("there is no webhook; `batonpass webhook add URL` makes one")


@command.command()
@click.argument("webhook", metavar="ID")
@principal_option(_BY)
@ledger_and_json
def rotate(webhook: str, *, by: str, as_json: bool) -> None:
    """Give a webhook another secret, and print it once.

    The one before signs beside it for a day. ID is the end of its id, as `batonpass webhook list` shows it.
    """
    with opened_relay() as relay:
        issued = _webhooks(relay).rotate(webhook, by=by)
    if as_json:
        say_json({"id": issued.id, "secret": issued.secret.reveal()})
        return
    tell(f"webhook {ending(issued.id)} has another secret, which is shown this once:")
    say(issued.secret.reveal())


@command.command()
@click.argument("webhook", metavar="ID")
@ledger_and_json
def test(webhook: str, *, as_json: bool) -> None:
    """Send a webhook an event that says nothing. The exit code is 1 if it does not take it."""
    with opened_relay() as relay:
        answer = _webhooks(relay).test(webhook)
    if as_json:
        say_json({"status": answer.status, "taken": answer.is_good})
    else:
        tell(f"it answered {answer.status}", "" if answer.is_good else "; only 2xx counts as taken")
    raise SystemExit(0 if answer.is_good else NO)


@command.command()
@click.argument("webhook", metavar="ID")
@principal_option(_BY)
@ledger_and_json
def resume(webhook: str, *, by: str, as_json: bool) -> None:
    """Try a webhook again that was given up. It is told everything since then."""
    with opened_relay() as relay:
        found = _webhooks(relay).resume(webhook, by=by)
    if as_json:
        say_json({"id": found.id, "resumed": True})
    else:
        tell(f"webhook {ending(found.id)} is tried again")


@command.command()
@click.argument("webhook", metavar="ID")
@reason_option()
@principal_option(_BY)
@ledger_option
@json_option
def remove(webhook: str, *, reason: str, by: str, as_json: bool) -> None:
    """Remove a webhook, and delete its secret.

    It is told nothing more.
    """
    with opened_relay() as relay:
        found = _webhooks(relay).remove(webhook, by=by, reason=reason)
    if as_json:
        say_json({"id": found.id, "removed": True})
    else:
        tell(f"removed webhook {ending(found.id)} at {place_of(found.url)}")


@command.command()
@click.option("--once", is_flag=True, help="Deliver all due receipts and exit; the exit code is 1 if a webhook failed.")
@ledger_and_json
def deliver(*, once: bool, as_json: bool) -> None:
    """Deliver to all webhooks until a signal.

    `batonpass serve` does the same beside its work.
    """
    with opened_relay() as relay:
        sender = WebhookSender(relay, _webhooks(relay))
        if once:
            delivered, failed = sender.send_all()
            _report(delivered, failed, as_json=as_json)
            raise SystemExit(NO if failed else 0)
        with stopped_by_signals() as stop:
            sender.run_until(stop, told=lambda delivered, failed: _report(delivered, failed, as_json=as_json))


def _report(delivered: int, failed: int, *, as_json: bool) -> None:
    if as_json:
        say_json({"delivered": delivered, "failed": failed}, line=True)
    else:
        tell(f"{delivered} delivered, {failed} to be tried again")


def _state(one: WebhookRecord) -> str:
    if one.state == "failed":
        return paint("given up", "red")
    return paint("active", "green") if one.is_active else paint("erased", "red")
