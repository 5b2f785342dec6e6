"""`batonpass handoff`: what was delegated, what came of it, and what to do next."""

from typing import Final

import click

from batonpass.cli.deferred_group import DeferredGroup

# Sorted: this is the order in which `--help` lists them.
_HOMES: Final = {
    "answer": "handoff_acting:answer",
    "approve": "handoff_deciding:approve",
    "brief": "handoff_brief:show_briefing",
    "cancel": "handoff_acting:cancel",
    "decline": "handoff_acting:decline",
    "deny": "handoff_deciding:deny",
    "endorse": "handoff_endorsing:endorse",
    "list": "handoff_list:list_",
    "refute": "handoff_acting:refute",
    "replace": "handoff_acting:replace",
    "retry": "handoff_acting:retry",
    "settle": "handoff_acting:settle",
    "show": "handoff_account:show",
    "verify": "handoff_acting:verify",
    "waive": "handoff_acting:waive",
}


@click.group(cls=DeferredGroup, homes=_HOMES)
def command() -> None:
    """Look at what was delegated, answer, judge, and try again what failed.

    A handoff is one task that a run gave to an agent. An ID is its last characters, `last`, or the agent's name.
    """
