"""Records agents of LangChain and LangGraph: their tools, transfers, subagents, and nodes of graphs.

    from batonpass.adapters.langgraph import record

    agent = create_agent(model, tools, name="lead", middleware=[record(by="user:ana")])

Give the same middleware to every agent of a graph: create_agent, swarm, supervisor and deepagents take it as it is.
docs/guide/langgraph.md shows it.
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
    from batonpass.adapters.langgraph.recorded_graphs import RecordedGraphs

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = (
    FrameworkVersions(package="langgraph", module="langgraph", extra="langgraph", oldest=(1, 1), below=(1, 3)),
    FrameworkVersions(package="langchain", module="langchain", extra="langgraph", oldest=(1, 2), below=(1, 5)),
)


def record(
    *,
    by: str | None = None,
    relay: Relay | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    delegates: Sequence[str] = (),
    grants: Mapping[str, GrantRequest | Sequence[str]] | None = None,
    items: Sequence[GivenItem] = (),
    mode: Mode | str | None = None,
    brief: bool | None = None,
) -> "RecordedGraphs":
    """Return a middleware for agents: their work is recorded, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has; the last words of a person are the intent.
    `tools` declare tools by name, with functions that `batonpass.tool` declared. `delegates` names the tools that do
    nothing but run another agent: they are recorded as handoffs alone. `grants` are the grants of agents, by name: such
    an agent is enforced. `items` are constraints and exclusions that hold for each new root run. Models of enforced
    runs also get a briefing and marked results from outside; `brief` says so for all runs, or for none. Raises
    `MissingExtraError`.
    """
    for versions in VERSIONS:
        versions.require()
    from batonpass.adapters.langgraph.recorded_graphs import RecordedGraphs  # noqa: PLC0415 - needs the framework

    ledger = FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    return RecordedGraphs(ledger, delegates)
