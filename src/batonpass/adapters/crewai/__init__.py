"""Records agents of CrewAI: the tasks of crews, delegations to coworkers, agents that are kicked off, and their tools.

    from batonpass.adapters.crewai import record

    record(by="user:ana")

From then on, every kickoff of this process is recorded. CrewAI is imported when `record` is called.
docs/guide/crewai.md shows it.
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
    from batonpass.adapters.crewai.recorded_crews import CrewRecording

__all__ = ["VERSIONS", "record"]

VERSIONS: Final = FrameworkVersions(
    package="crewai", module="crewai", extra="crewai", oldest=(1, 15, 24), below=(1, 16)
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
) -> "CrewRecording":
    """Record every kickoff of a crew or an agent in this process from now on, by default in the ledger here.

    `by` is the principal for whom agents work that no current run has; the description of their task is the intent.
    `tools` declare tools by name, with functions that `batonpass.tool` declared; a function that has both decorators
    needs no entry. `grants` are the grants of agents, by role: such an agent is enforced, and its children get no more
    than it may delegate. `items` are constraints and exclusions that hold for each new root run. Models of enforced
    runs also get a briefing and marked results from outside; `brief` says so for all runs, or for none. Close the
    returned recording to stop; a second one takes the place of the first. Raises `MissingExtraError`.
    """
    VERSIONS.require()
    from batonpass.adapters.crewai.recorded_crews import CrewRecording  # noqa: PLC0415 - needs the framework

    return CrewRecording(
        FrameworkLedger(by=by, relay=relay, tools=tools, grants=grants, items=items, mode=mode, brief=brief)
    )
