"""`batonpass handoff`: list, show and act on handoffs."""

from typing import Final

import click

from batonpass.cli.deferred_group import DeferredGroup

# Sorted: this is the order in which `--help` lists them.
_HOMES: Final = {
    "answer": "handoff.person_acts:answer",
    "approve": "handoff.approval:approve",
    "brief": "handoff.brief:show_briefing",
    "cancel": "handoff.person_acts:cancel",
    "check": "handoff.check:check",
    "decline": "handoff.person_acts:decline",
    "deny": "handoff.approval:deny",
    "endorse": "handoff.person_acts:endorse",
    "list": "handoff.list:list_",
    "refute": "handoff.person_acts:refute",
    "replace": "handoff.person_acts:replace",
    "retry": "handoff.person_acts:retry",
    "settle": "handoff.person_acts:settle",
    "show": "handoff.show:show",
    "verify": "handoff.person_acts:verify",
    "waive": "handoff.person_acts:waive",
}


@click.group(cls=DeferredGroup, homes=_HOMES)
def command() -> None:
    """List and show handoffs, and decide about them.

    A handoff is one task that a run gave to an agent. For ID, give its last characters, `last`, or the agent's name.
    """
