"""Records agents of PydanticAI: their tools, and the agents that are run inside of tools.

    from batonpass.adapters.pydantic_ai import record

    agent = Agent(model, capabilities=[record(by="user:ana")])

Give the same capability to the agents that others run inside of their tools. docs/guide/pydantic-ai.md shows it.
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
    from batonpass.adapters.pydantic_ai.recorded_runs import RecordedRuns

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="pydantic-ai-slim", module="pydantic_ai", extra="pydantic-ai", oldest=(2, 66), below=(3, 0)
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
) -> "RecordedRuns":
    """Return a capability for agents: their runs are recorded, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has; their prompt is the intent. `tools` declare
    tools by name, with functions that `batonpass.tool` declared. `delegates` names the tools that do nothing but run
    another agent: they are recorded as handoffs alone. `grants` are the grants of agents, by name: such an agent is
    enforced. `items` are constraints and exclusions that hold for each new root run. Models of enforced runs also get a
    briefing and marked results from outside; `brief` says so for all runs, or for none. Raises `MissingExtraError`.
    """
    VERSIONS.require()
    from batonpass.adapters.pydantic_ai.recorded_runs import RecordedRuns  # noqa: PLC0415 - needs the framework

    ledger = FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    return RecordedRuns(ledger=ledger, delegates=frozenset(delegates))
