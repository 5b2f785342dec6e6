"""Records agents of the OpenAI Agents SDK: their handoffs, agents used as tools, function tools and MCP tools.

    from batonpass.adapters.openai_agents import record

    record(by="user:ana")

From then on, every `Runner.run`, `run_sync` and `run_streamed` of this process is recorded. The SDK is imported when
`record` is called. docs/guide/openai-agents.md shows it.
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
    from batonpass.adapters.openai_agents.recorded_runner import SdkRecording

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="openai-agents", module="agents", extra="openai-agents", oldest=(0, 22), below=(0, 25)
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
) -> "SdkRecording":
    """Record every run of the SDK in this process from now on, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has; their first input is the intent. `tools` declare
    tools by name, with functions that `batonpass.tool` declared; a function that has both decorators needs no entry.
    `grants` are the grants of agents, by name: such an agent is enforced, and its children get no more than it may
    delegate. `items` are constraints and exclusions that hold for each new root run. Models of enforced runs also get a
    briefing and marked results from outside; `brief` says so for all runs, or for none. Close the returned recording to
    stop. Raises `MissingExtraError` if the SDK is not installed.
    """
    VERSIONS.require()
    from batonpass.adapters.openai_agents.recorded_runner import SdkRecording  # noqa: PLC0415 - needs the SDK

    return SdkRecording(
        FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    )
