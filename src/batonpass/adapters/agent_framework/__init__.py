"""Records agents of Microsoft Agent Framework: their tools, agents used as tools, and handoffs of workflows.

    from batonpass.adapters.agent_framework import record

    agent = Agent(client=client, middleware=[record(by="user:ana")])

Give the same middleware to the agents that others use as tools or hand off to. docs/guide/agent-framework.md shows it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_versions import FrameworkVersions
from batonpass.handoff.transfer.offer_request import GivenItem
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.relay import Relay

if TYPE_CHECKING:
    from batonpass.adapters.agent_framework.recorded_agents import RecordedAgents

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="agent-framework-core", module="agent_framework", extra="agent-framework", oldest=(1, 4), below=(2, 0)
)


def record(
    *,
    by: str | None = None,
    relay: Relay | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    grants: Mapping[str, GrantRequest | Sequence[str]] | None = None,
    items: Sequence[GivenItem] = (),
    mode: Mode | str | None = None,
    brief: bool | None = None,
) -> "RecordedAgents":
    """Return a middleware for agents: their runs are recorded, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has; the last words of the user are the intent.
    `tools` declare tools by name, with functions that `batonpass.tool` declared; a function that has both decorators
    needs no entry. `grants` are the grants of agents, by name: such an agent is enforced, and its children get no more
    than it may delegate. `items` are constraints and exclusions that hold for each new root run. Models of enforced
    runs also get a briefing and marked results from outside; `brief` says so for all runs, or for none. Raises
    `MissingExtraError`.
    """
    VERSIONS.require()
    from batonpass.adapters.agent_framework.recorded_agents import RecordedAgents  # noqa: PLC0415 - needs the framework

    return RecordedAgents(
        FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    )
