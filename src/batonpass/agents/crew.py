"""Crews: agents that work one after the other or in parallel, each through its own handoff."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from batonpass.agents.agent_relay import relay_of
from batonpass.agents.handoff_tool import HandoffExecutor
from batonpass.agents.registry import AgentRegistry
from batonpass.aio import AsyncRelay, AsyncRun
from batonpass.aio.threads import in_thread
from batonpass.errors import InvalidValueError
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import RunId, session_named
from batonpass.model.base.kinds import Outcome
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import WorkItem
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling
from batonpass.relay import Relay


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewResult:
    """The result of a crew: the last answer of a pipeline, or all answers of a parallel crew."""

    output: str
    results: tuple[Result, ...]
    run: RunId

    @property
    def delivered(self) -> bool:
        """Return whether everybody delivered."""
        return all(result.delivered for result in self.results)


class Crew:
    """Agents that work on one task by a plan; each result travels with the next handoff."""

    def __init__(
        self,
        agents: Sequence[str],
        *,
        registry: AgentRegistry,
        policy: HandoffPolicy | None = None,
        name: str = "crew",
        relay: Relay | AsyncRelay | None = None,
        side_by_side: bool = False,
    ) -> None:
        if not agents:
            raise InvalidValueError("agents", "a crew needs at least one")
        for agent in agents:
            registry.get(agent)
        self._agents = tuple(agents)
        self._executor = HandoffExecutor(registry, policy)
        self._name = name
        self._relay = relay
        self._side_by_side = side_by_side

    @classmethod
    def pipeline(
        cls,
        agents: Sequence[str],
        *,
        registry: AgentRegistry,
        policy: HandoffPolicy | None = None,
        name: str = "crew",
        relay: Relay | AsyncRelay | None = None,
    ) -> Self:
        """Return a crew that works in sequence; each agent gets the reports of those before it."""
        return cls(agents, registry=registry, policy=policy, name=name, relay=relay)

    @classmethod
    def parallel(
        cls,
        agents: Sequence[str],
        *,
        registry: AgentRegistry,
        policy: HandoffPolicy | None = None,
        name: str = "crew",
        relay: Relay | AsyncRelay | None = None,
    ) -> Self:
        """Return a crew that works in parallel; no agent sees the others' reports."""
        return cls(agents, registry=registry, policy=policy, name=name, relay=relay, side_by_side=True)

    async def run(
        self,
        task: str,
        *,
        session_id: str | None = None,
        by: str = "user:unknown",
        grant: GrantRequest | None = None,
    ) -> CrewResult:
        """Let all agents work on a task. A failure ends a pipeline; in a parallel crew the others continue.

        With a `grant`, each agent gets the part of what it may delegate that its definition asks for, all together
        within its limits.
        Raises `PolicyRefusedError`. Everything is recorded, and a cancellation cancels running handoffs.
        """
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        session = None if session_id is None else session_named(session_id)
        root = await relay.start(
            task,
            by=by,
            agent=self._name,
            session=session,
            series=session,
            grant=grant,
        )
        try:
            results = await (self._together(root, task) if self._side_by_side else self._in_turn(root, task))
            crew = CrewResult(output=_output(results, self._side_by_side), results=results, run=root.id)
            done = tuple(
                WorkItem(f"{agent} delivered")
                for agent, one in zip(self._agents, results, strict=False)
                if one.delivered
            )
            root.report(crew.output, completed=done)
            await root.close(Outcome.COMPLETED if crew.delivered else Outcome.FAILED)
        except asyncio.CancelledError:
            await root.close(Outcome.CANCELLED)
            raise
        except BaseException as error:
            await root.fail(error)
            raise
        return crew

    async def _in_turn(self, root: AsyncRun, task: str) -> tuple[Result, ...]:
        results: list[Result] = []
        for number, agent in enumerate(self._agents, 1):
            results.append(await self._hand_off(root, task, number, agent))
            if not results[-1].delivered:
                break
        return tuple(results)

    async def _together(self, root: AsyncRun, task: str) -> tuple[Result, ...]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._hand_off(root, task, number, agent))
                for number, agent in enumerate(self._agents, 1)
            ]
        return tuple(one.result() for one in tasks)

    async def _hand_off(self, root: AsyncRun, task: str, number: int, agent: str) -> Result:
        phase = f"{number} of {len(self._agents)}"
        # The same agent may appear twice in a plan: these are two handoffs, although the task is the same.
        return await self._executor.execute(
            agent, task, run=root, brief=BriefRequest(phase=phase), handling=Handling(key=f"{number} {agent}")
        )


def _output(results: Sequence[Result], side_by_side: bool) -> str:  # noqa: FBT001 - the form of the crew
    said = [_said(result) for result in results]
    return "\n\n".join(said) if side_by_side else said[-1]


def _said(result: Result) -> str:
    if result.delivered and result.report is not None:
        return result.report.result
    return (
        f"{result.handoff} is {result.state}: {result.reason}"
        if result.reason
        else f"{result.handoff} is {result.state}"
    )
