"""`batonpass worker`: run handoffs that wait for an agent, until a signal."""

import re
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

import click

from batonpass.audit.short_ids import ending
from batonpass.cli.input.app_relay import relay_of
from batonpass.cli.input.options import checked, json_option
from batonpass.cli.input.stop_signals import stopped_by_signals
from batonpass.cli.output.exits import NO, tell_trouble
from batonpass.cli.output.terminal import paint, say_json, tell
from batonpass.cli.output.units import elapsed
from batonpass.dispatch.alarm_watch import alarm_watch
from batonpass.dispatch.worker import LEASE_FOR, Worked, Worker
from batonpass.model.base.ids import require_agent
from batonpass.model.base.lifecycle import State

_GOOD: Final = frozenset({State.COMPLETED, State.VERIFIED})


@click.command()
@click.option(
    "--app",
    metavar="MODULE:NAME",
    required=True,
    help="Your relay: a module, and in it a Relay or a function that returns one.",
)
@click.option("--agents", metavar="A,B", help="Only for these agents.  [default: all that the app registers]")
@click.option(
    "--lease",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=LEASE_FOR.total_seconds(),
    show_default=True,
    help="Without a heartbeat for this long, another worker takes over.",
)
@click.option("--once", is_flag=True, help="Run one handoff and exit; the exit code is 1 if none waits.")
@click.option(
    "--name",
    metavar="NAME",
    callback=checked(lambda given: require_agent("name", given)),
    help="The name of this worker in leases.  [default: this machine and process]",
)
@json_option
def command(app: str, agents: str | None, lease: float, name: str | None, *, once: bool, as_json: bool) -> None:
    """Run handoffs that wait for an agent, one at a time, until a signal.

    The first SIGTERM or Ctrl-C lets the current handoff finish. The second one ends the process at once, and another
    worker takes over.
    """
    with relay_of(app) as relay:
        if not relay.runners:
            raise click.UsageError(f"{app} registers no agent, so there is nothing to run")
        chosen = None if agents is None else _chosen(agents, sorted(relay.runners))
        worker = Worker(
            relay,
            name=name,
            agents=chosen,
            lease_for=timedelta(seconds=lease),
            finished=_print_facts if as_json else _tell_words,
            troubled=tell_trouble,
        )
        with stopped_by_signals() as stop:
            if not once:
                tell(f"{worker.name} works for {', '.join(chosen or sorted(relay.runners))}")
                with alarm_watch(relay, troubled=tell_trouble):
                    worker.run_until(stop)
                return
            relay.sweep(holder=worker.name)
            if not worker.work_one():
                tell("nothing waits")
                click.get_current_context().exit(NO)


def _chosen(given: str, known: list[str]) -> list[str]:
    """Return the agents of `--agents`. One that the app does not register is a usage error."""
    agents = list(dict.fromkeys(name for each in given.split(",") if (name := each.strip())))
    if not agents:
        raise click.UsageError(f"--agents is empty; the app registers {', '.join(known)}")
    for agent in agents:
        if agent not in known:
            alike = get_close_matches(agent, known, 1)
            hint = f"; did you mean {alike[0]}?" if alike else ""
            raise click.UsageError(f"--agents {agent}: the app registers only {', '.join(known)}{hint}")
    return agents


def _print_facts(worked: Worked) -> None:
    say_json(
        {
            "id": worked.handoff,
            "agent": worked.agent,
            "state": worked.state,
            "attempt": worked.attempt,
            "took": round(worked.took.total_seconds(), 6),
            "error": worked.error,
            "reason": worked.reason or None,
        },
        line=True,
    )


def _tell_words(worked: Worked) -> None:
    state = paint(worked.state, "green" if worked.state in _GOOD else "red")
    attempt = f" · attempt {worked.attempt}" if worked.attempt > 1 else ""
    code = "" if worked.error is None else f" [{worked.error}]"
    why = f" · {_first_sentence(worked.reason)}{code}" if worked.reason or code else ""
    tell(f"{worked.agent} {ending(worked.handoff)} · ", state, f"{attempt} · {elapsed(worked.took)}{why}")


def _first_sentence(reason: str) -> str:
    """Return the first sentence of a reason."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", reason, maxsplit=1)[0]
