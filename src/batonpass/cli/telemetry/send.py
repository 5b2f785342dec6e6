"""`batonpass telemetry send`: send spans and metrics to a collector of OpenTelemetry, until a signal."""

import logging
from contextlib import closing

import click

from batonpass.cli.input.ledger_access import opened_relay, settings
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.input.stop_signals import stopped_by_signals
from batonpass.cli.output.terminal import say_json, tell
from batonpass.cli.output.units import counted
from batonpass.errors.egress import CollectorError
from batonpass.telemetry.collector import OtlpCollector
from batonpass.telemetry.follower import TelemetryFollower


@click.group()
def command() -> None:
    """Send spans and metrics to other systems."""


@command.command()
@click.option("--to", "endpoint", metavar="URL", help="The collector, such as http://127.0.0.1:4318.")
@click.option("--once", is_flag=True, help="Send new spans and metrics, and exit.")
@click.option("--words", is_flag=True, help="Add tasks, arguments, results and reports to the spans.")
@ledger_and_json
def send(endpoint: str | None, *, once: bool, words: bool, as_json: bool) -> None:
    """Send spans and metrics to a collector, until a signal.

    It is sent to OpenTelemetry by OTLP over HTTP, at least once and in order, also after a crash: ids follow from
    receipts, so that a repeat is recognised. Without --to, OTEL_EXPORTER_OTLP_ENDPOINT says where.
    """
    found = settings()
    if found.home is None:
        raise click.UsageError("a ledger in memory cannot remember how much was sent")
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # a failure is told below, once
    with opened_relay() as relay:
        with relay.store.view() as view:
            ledger = view.info().id
        with closing(OtlpCollector(ledger, endpoint)) as collector:
            follower = TelemetryFollower(relay.store, found.home, collector, words=words)
            if once:
                _report(follower.send_all(), None, as_json=as_json)
                return
            with stopped_by_signals() as stop:
                follower.run_until(stop, told=lambda sent, error: _report(sent, error, as_json=as_json))


def _report(sent: int, error: CollectorError | None, *, as_json: bool) -> None:
    if as_json:
        say_json({"sent": sent, "error": None if error is None else error.code}, line=True)
    elif error is not None:
        tell(str(error))
    else:
        tell(f"sent {counted(sent, 'span')}")
