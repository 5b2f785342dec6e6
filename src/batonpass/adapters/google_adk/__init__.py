"""Records agents of Google ADK: transfers, agents used as tools, sub-agents with a task, workflow agents, and tools.

    from batonpass.adapters.google_adk import record

    app = App(name="office", root_agent=lead, plugins=[record(by="user:ana")])

The plugin covers the whole tree of agents. docs/guide/google-adk.md shows it.
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
    from batonpass.adapters.google_adk.adk_plugin import AdkPlugin

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="google-adk", module="google.adk", extra="google-adk", oldest=(2, 12), below=(3, 0)
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
) -> "AdkPlugin":
    """Return a plugin for an app or a runner: its agents are recorded, by default in the ledger of this directory.

    `by` is the principal for whom agents work that no current run has, by default the user of the session; the user's
    message is the intent. `tools` declare tools by name, with functions that `batonpass.tool` declared; a function that
    has the decorator needs no entry. `grants` are the grants of agents, by name: such an agent is enforced, and its
    children get no more than it may delegate. `items` are constraints and exclusions that hold for each new root run.
    Models of enforced runs also get a briefing and marked results from outside; `brief` says so for all runs, or for
    none. Raises `MissingExtraError` if ADK is not installed.
    """
    VERSIONS.require()
    from batonpass.adapters.google_adk.adk_plugin import AdkPlugin  # noqa: PLC0415 - needs the framework

    return AdkPlugin(
        FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    )
