"""`batonpass alarm`: alarms about agents that work differently from their baseline."""

from typing import Any

import click

from batonpass.cli.input.ledger_access import opened_relay, opened_view
from batonpass.cli.input.options import by_option, ledger_and_json, reason_option
from batonpass.cli.output.exits import NO
from batonpass.cli.output.terminal import paint, say, say_json, table
from batonpass.cli.output.units import counted, moment
from batonpass.drift.report.drift_text import alarm_facts
from batonpass.model.base.visible import visible
from batonpass.records.remarks.alarm import AlarmRecord, find_alarms


@click.group()
def command() -> None:
    """List, check and acknowledge alarms. A rule of the policy may stop an agent in alarm."""


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="List those that are acknowledged or over as well.")
@ledger_and_json
def list_(*, everything: bool, as_json: bool) -> None:
    """List the alarms that stand. Exits with 1 if there are any."""
    with opened_view() as view:
        found = [one for one in find_alarms(view) if everything or one.stands]
    if as_json:
        say_json([alarm_facts(one) for one in found])
    elif found:
        for one in found:
            _say(one)
    else:
        say("no alarm is on record" if everything else "no alarm stands")
    if any(one.stands for one in found):
        click.get_current_context().exit(NO)


@command.command()
@ledger_and_json
def check(*, as_json: bool) -> None:
    """Compare weeks, and record new alarms and ended ones.

    The last six weeks of every agent are compared. Checking twice changes nothing.

    Exits with 1 if an alarm stands. A server and a worker do this every hour if a rule of the policy reads alarms.
    """
    with opened_relay() as relay:
        checked = relay.check_alarms()
    if as_json:
        facts: dict[str, Any] = {
            name: [alarm_facts(one) for one in getattr(checked, name)] for name in ("raised", "cleared", "standing")
        }
        say_json(facts)
    else:
        for one in (*checked.raised, *checked.cleared):
            _say(one)
        counts = f"{len(checked.raised)} raised, {len(checked.cleared)} cleared"
        say(paint(f"{counts}; {counted(len(checked.standing), 'alarm')} in all", bold=True))
    if checked.standing:
        click.get_current_context().exit(NO)


@command.command()
@click.argument("alarm", metavar="ALARM")
@by_option
@reason_option()
@ledger_and_json
def acknowledge(alarm: str, *, by: str, reason: str, as_json: bool) -> None:
    """Let an agent in alarm go on, with a reason.

    The alarm stays on record, and no rule reads it any more.

    ALARM is the beginning or the end of its key, or the agent if that has one alarm. Only a person may do this.
    """
    with opened_relay() as relay:
        found = relay.acknowledge_alarm(alarm, by=by, reason=reason)
    if as_json:
        say_json(alarm_facts(found))
        return
    say(f"{found.agent} {found.key} · acknowledged by {by} (unproven): {visible(reason)}")


def _say(one: AlarmRecord) -> None:
    kind = "erased" if one.task_kind is None else one.task_kind
    say(paint(f"{one.agent} {one.key}", "red" if one.stands else None, bold=True), f" · {kind} · ", one.words)
    rows = [["why", one.sentence or one.cause], ["raised", moment(one.at)]]
    rows += [["reason", one.seen.reason or "erased"]] if one.seen is not None else []
    table([[paint(name, dim=True), words] for name, words in rows], indent="  ", fold=True)
