"""Records agents of Strands: agents used as tools, swarms, graphs, agents that tools call, and tools.

    from batonpass.adapters.strands import record

    agent = Agent(tools=[editor, write_file], plugins=[record(by="user:ana")])

The plugin of an agent covers the agents among its tools, and the plugin of a swarm or a graph covers its nodes.
docs/guide/strands.md shows it.
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
    from batonpass.adapters.strands.strands_plugin import StrandsPlugin

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="strands-agents", module="strands", extra="strands", oldest=(1, 58), below=(2, 0)
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
) -> "StrandsPlugin":
    """Return a plugin for agents, swarms and graphs: they are recorded, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has; their prompt is the intent. `tools` declare
    tools by name, with functions that `batonpass.tool` declared; a function that has both decorators needs no entry.
    `grants` are the grants of agents, by name: such an agent is enforced, and its children get no more than it may
    delegate. `items` are constraints and exclusions that hold for each new root run. Models of enforced runs also get a
    briefing and marked results from outside; `brief` says so for all runs, or for none. Raises `MissingExtraError` if
    Strands is not installed.
    """
    VERSIONS.require()
    from batonpass.adapters.strands.strands_plugin import StrandsPlugin  # noqa: PLC0415 - needs the framework

    return StrandsPlugin(
        FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    )
