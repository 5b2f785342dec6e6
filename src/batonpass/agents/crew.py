"""Crews: agents that work one after the other or in parallel, each through its own handoff."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from msgspec.structs import replace

from batonpass.agents.agent_at_work import depth_within
from batonpass.agents.agent_relay import relay_of
from batonpass.agents.agent_sessions import read_intent
from batonpass.agents.agent_tools import Work
from batonpass.agents.definition import AgentDefinition
from batonpass.agents.handoff_tool import HandoffExecutor
from batonpass.agents.key_lock import key_lock
from batonpass.agents.registry import CREW, AgentRegistry
from batonpass.aio import AsyncRelay, AsyncRun, current_run
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import CrewFailedError, HandoffAskedError, HandoffError, HandoffHeldError, InvalidValueError
from batonpass.handoff.programs.runners import fail_run
from batonpass.handoff.transfer.offer_request import GivenItem
from batonpass.handoff.transfer.result import Result, read_result
from batonpass.model.base.ids import RunId, session_named
from batonpass.model.base.kinds import Outcome
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import WorkItem
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling
from batonpass.relay import Relay
from batonpass.store.port import LedgerStore

UNKNOWN: Final = "user:unknown"
_WITHDRAWN: Final = frozenset({State.CANCELLED, State.EXPIRED})
_WAITS: Final = frozenset({State.HELD, State.ASKED})


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

    @property
    def waiting(self) -> tuple[Result, ...]:
        """Return the results that wait for somebody, who has to approve them or to answer a question."""
        return tuple(result for result in self.results if result.state in _WAITS)


class Crew:
    """Agents that work on one task by a plan; each result travels with the next handoff.

    A crew can be registered as an agent, so that work can be handed to it.
    """

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

    def __repr__(self) -> str:
        order = "in parallel" if self._side_by_side else "in sequence"
        return f"<Crew {self._name} of {', '.join(self._agents)}, {order}>"

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
        by: str | None = None,
        items: Iterable[GivenItem] = (),
        grant: GrantRequest | None = None,
        key: str | None = None,
    ) -> CrewResult:
        """Let all agents work on a task. A failure ends a pipeline; in a parallel crew the others continue.

        Inside a run, the crew is handed the task by that run: the intent, the constraints, the principal, the grant and
        the depth of that run hold for every agent in it. Elsewhere it is a root run of its own. `items` are further
        things to know, such as constraints. With a `grant`, each agent gets the part that its definition asks for, of
        the delegable rights, and all agents share its limits. The same task with the same `key` is done once, and goes
        on after a crash.

        Raises `PolicyRefusedError`, and `InvalidValueError` for a session or a principal inside a run, which has its
        own. Everything is recorded, and a cancellation cancels running handoffs.
        """
        parent = _current()
        if parent is not None:
            self._require_own(parent, session_id, by)
            return await self._below(parent, task, items=items, grant=grant, key=key)
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        session = None if session_id is None else session_named(session_id)
        async with key_lock(relay, self._name, key):
            root = await relay.start(
                task,
                by=by or UNKNOWN,
                agent=self._name,
                items=items,
                session=session,
                series=session,
                grant=grant,
                key=key,
            )
            if root.is_replayed:
                return await in_thread(partial(self._recall, relay.store, root.id))
            return await self._finish(root, task)

    async def resume(self, run: str = LAST) -> CrewResult:
        """Go on with a root run of this crew that waited for somebody, or whose process is gone.

        The default is the last open one. Agents that have delivered are not asked again. A process that still holds the
        run is fenced. Raises `NotFoundError` if there is no such run, and `InvalidValueError` if another agent began
        it.
        """
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        root = await relay.resume(run)
        if root.agent != self._name:
            raise InvalidValueError("run", f"{root.id} is a run of {root.agent}, and not of {self._name}")
        return await self._finish(root, await in_thread(lambda: read_intent(relay.store, root.id)))

    async def _finish(self, root: AsyncRun, task: str) -> CrewResult:
        """Let all members work on a root run until it ends, or waits for somebody."""
        try:
            results = await self._work(root, task)
            await _end(root, self._failure(results))
        except asyncio.CancelledError:
            await root.close(Outcome.CANCELLED)
            raise
        except BaseException as error:
            await in_thread(partial(fail_run, root.sync, error))
            raise
        return self._result(root.id, results)

    async def introduce(self, card: Card) -> None:
        """Register the card of the crew, with its ceiling, in its relay."""
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        relay.introduce(card)

    def working(self, agent_def: AgentDefinition) -> Work:  # noqa: ARG002 - a crew has no model
        """Return the function that works on handoffs to this crew: each member gets the task by a handoff of its own.

        Agents that delivered in an earlier attempt are not asked again.
        """

        async def work(run: AsyncRun) -> None:
            failure = self._failure(await self._work(run, run.task))
            if failure is not None:
                raise failure

        return work

    @staticmethod
    def _require_own(parent: AsyncRun, session_id: str | None, by: str | None) -> None:
        """Refuse another session or principal than those of the run around the crew. Raises `InvalidValueError`."""
        if session_id is not None or by not in {None, parent.principal}:
            raise InvalidValueError(
                "by" if session_id is None else "session_id",
                f"is not given inside a run: the crew works for {parent.principal} in the session of {parent.id}",
            )

    async def _below(
        self,
        parent: AsyncRun,
        task: str,
        *,
        items: Iterable[GivenItem],
        grant: GrantRequest | None,
        key: str | None,
    ) -> CrewResult:
        """Let the crew work as the child of a run."""
        # The allowlist of a crew is about its members. Whether the crew may be asked is up to the policy of the relay.
        own = self._executor.policy
        policy = replace(own, allowed_agents=None, max_depth=depth_within(own.max_depth))
        handoff = await parent.hand_off(
            self._name, task, items=items, grant=grant, handling=Handling(policy=policy, key=key)
        )
        result = await handoff.run(self.working(AgentDefinition(name=self._name, model=CREW)))
        if result.run is None:
            return CrewResult(output=_said(result), results=(result,), run=parent.id)
        recalled = await in_thread(partial(self._recall, parent.sync._desk.store, result.run))  # noqa: SLF001 - we speak for the run
        if result.delivered:
            return recalled
        # Its own reason says more than that of its last member, and there may be no member: a policy refused the first.
        return CrewResult(output=_said(result), results=recalled.results or (result,), run=result.run)

    async def _work(self, run: AsyncRun, task: str) -> tuple[Result, ...]:
        """Let all members work on a task below a run, and report their results."""
        results = await (self._together(run, task) if self._side_by_side else self._in_turn(run, task))
        done = tuple(
            WorkItem(f"{agent} delivered") for agent, one in zip(self._agents, results, strict=False) if one.delivered
        )
        run.report(_output(results, self._side_by_side), completed=done)
        return results

    async def _in_turn(self, run: AsyncRun, task: str) -> tuple[Result, ...]:
        results: list[Result] = []
        for number, agent in enumerate(self._agents, 1):
            results.append(await self._hand_off(run, task, number, agent))
            if not results[-1].delivered:
                break
        return tuple(results)

    async def _together(self, run: AsyncRun, task: str) -> tuple[Result, ...]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._hand_off(run, task, number, agent))
                for number, agent in enumerate(self._agents, 1)
            ]
        return tuple(one.result() for one in tasks)

    async def _hand_off(self, run: AsyncRun, task: str, number: int, agent: str) -> Result:
        phase = f"{number} of {len(self._agents)}"
        # The same agent may appear twice in a plan: these are two handoffs, although the task is the same.
        return await self._executor.execute(
            agent, task, run=run, brief=BriefRequest(phase=phase), handling=Handling(key=f"{number} {agent}")
        )

    def _failure(self, results: Sequence[Result]) -> HandoffError | None:
        """Return why the crew has failed: everybody who did not deliver, and why; None if all delivered.

        While somebody has to decide about a member, or to answer it, the crew waits with it.
        """
        waits = next((one for one in results if one.state in _WAITS), None)
        if waits is not None:
            asked = waits.state is State.ASKED
            return HandoffAskedError(waits.handoff, waits.question or "") if asked else HandoffHeldError(waits.handoff)
        missing = [
            f"{agent} ({_said(one)})" for agent, one in zip(self._agents, results, strict=False) if not one.delivered
        ]
        return CrewFailedError(self._name, missing) if missing else None

    def _recall(self, store: LedgerStore, run: RunId) -> CrewResult:
        """Return the result of a crew that has worked, from the record."""
        with store.view() as view:
            members = sorted(view.find_handoffs(parent=run), key=lambda member: member.seq)
            # A member that another handoff replaced, or that was withdrawn before a second try, is not in the plan.
            results = tuple(read_result(view, member) for member in members if member.state not in _WITHDRAWN)
        return self._result(run, results)

    def _result(self, run: RunId, results: tuple[Result, ...]) -> CrewResult:
        return CrewResult(output=_output(results, self._side_by_side), results=results, run=run)


def _current() -> AsyncRun | None:
    try:
        return current_run()
    except InvalidValueError:
        return None


async def _end(run: AsyncRun, failure: HandoffError | None) -> None:
    await (run.close() if failure is None else run.fail(failure))


def _output(results: Sequence[Result], side_by_side: bool) -> str:  # noqa: FBT001 - the form of the crew
    said = [_said(result) for result in results]
    return "\n\n".join(said) if side_by_side else (said or [""])[-1]


def _said(result: Result) -> str:
    if result.delivered and result.report is not None:
        return result.report.result
    why = result.question if result.state is State.ASKED else result.reason
    return f"{result.handoff} is {result.state}: {why}" if why else f"{result.handoff} is {result.state}"
