"""Running agents: a root run for a user's request, an attempt for a handoff from another agent."""

import asyncio
import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from batonpass.agents.agent_at_work import AgentAtWork
from batonpass.agents.agent_relay import relay_of
from batonpass.agents.agent_sessions import is_in_session, read_intent, read_root_report, told_besides
from batonpass.agents.agent_tools import ToolDefinition, ToolExecutor, Work
from batonpass.agents.attempt_input import prepare
from batonpass.agents.clients import ModelClient
from batonpass.agents.definition import AgentDefinition, RunnerConfig, RunResult
from batonpass.agents.framework.extra_check import require_extra
from batonpass.agents.held_run import go_on, show_held
from batonpass.agents.key_lock import key_lock
from batonpass.agents.lead_tools import LEAD
from batonpass.agents.own_tools import GRANT, MEMORY, READING, SESSION
from batonpass.aio import AsyncRelay, AsyncRun
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.briefing.reports import gaps_of
from batonpass.errors import InvalidValueError
from batonpass.handoff.programs.agent_makeup import makeup
from batonpass.handoff.programs.runners import configured, fail_run
from batonpass.handoff.transfer.offer_request import GivenItem
from batonpass.model.base.ids import session_named
from batonpass.model.base.kinds import Outcome
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Report
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.model.grants.grant_request import grant_unless_nothing
from batonpass.model.grants.limits import Limits
from batonpass.relay import Relay

if TYPE_CHECKING:
    from batonpass.agents.framework.agent_loop import ModelAnswer
    from batonpass.handoff.transfer.held_work import HeldWork

PLAIN: Final = "report.plain"


class AgentRunner:
    """Runs agents on a relay: a given one, or that of this directory."""

    def __init__(
        self,
        model_client: ModelClient,
        tool_executor: ToolExecutor | None = None,
        config: RunnerConfig | None = None,
        *,
        relay: Relay | AsyncRelay | None = None,
    ) -> None:
        self._client = model_client
        self._executor = ToolExecutor() if tool_executor is None else tool_executor
        self._config = config or RunnerConfig()
        self._relay = relay

    def __repr__(self) -> str:
        return f"<AgentRunner with {self._client!r}, {len(self._executor.registry)} tools>"

    async def run(
        self,
        agent_def: AgentDefinition,
        user_input: str,
        *,
        session_id: str | None = None,
        by: str | None = None,
        items: Iterable[GivenItem] = (),
        limits: Limits | str | None = None,
        key: str | None = None,
    ) -> RunResult:
        """Answer a user. Their words are the intent of a new root run, and travel with every handoff below it.

        The run has the grant of its definition, within `limits`; a denied call comes back to the model as a sentence.
        In an existing session, its model is told the decisions, open questions and verified results so far, never an
        earlier conversation. With a `key`, the same request is answered once: a completed run is not repeated, one that
        another process works on is waited for, and one whose process is gone goes on where it stopped. Errors of the
        model's provider are recorded and raised, and so is a cancellation. Raises `MissingExtraError`, and
        `KeyReusedError` for other words under the same key.
        """
        require_extra()
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        session = None if session_id is None else session_named(session_id)
        async with key_lock(relay, agent_def.name, key):
            root = await relay.start(
                user_input,
                by=by or self._config.principal,
                agent=agent_def.name,
                items=items,
                session=session,
                series=session,
                grant=grant_unless_nothing(tuple(agent_def.may), tuple(agent_def.may_delegate), limits),
                key=key,
            )
            return await self._finish(relay, root, agent_def, user_input, session_id, resumable=key is not None)

    async def resume(self, agent_def: AgentDefinition, run: str = LAST, *, session_id: str | None = None) -> RunResult:
        """Go on with a root run whose process is gone. The default is the last open one.

        Calls that were finished are not made again. A process that still holds the run is fenced. Raises
        `NotFoundError` if there is no such run, and `InvalidValueError` if another agent began it.
        """
        require_extra()
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        root = await relay.resume(run)
        if root.agent != agent_def.name:
            raise InvalidValueError("agent_def", f"is {agent_def.name}, and {root.id} is a run of {root.agent}")
        words = await in_thread(lambda: read_intent(relay.store, root.id))
        return await self._finish(relay, root, agent_def, words, session_id, resumable=True)

    async def _finish(
        self,
        relay: AsyncRelay,
        root: AsyncRun,
        agent_def: AgentDefinition,
        words: str,
        session_id: str | None,
        *,
        resumable: bool,
    ) -> RunResult:
        """Let an agent work on a root run until it ends, and return the result; at once if it ended before."""
        if root.is_replayed:
            report = await in_thread(lambda: read_root_report(relay.store, root.id)) or Report()
            return RunResult(output=report.result, run=root.id, session_id=session_id, report=report, reused=True)
        try:
            messages = await root.messages()
            known = await in_thread(lambda: told_besides(root, relay.store, words))
            answer = await self._answer(
                relay,
                root,
                agent_def,
                prompt=[known, words] if known else [words],
                messages=messages,
                reports=is_in_session(root),
                checkpoints=resumable,
            )
            if isinstance(answer, tuple):
                await root.fail(answer[0].error)  # a root that is left by such an error stays open
                told = show_held(answer)
                return RunResult(output=told, run=root.id, session_id=session_id, state=State.HELD, held=answer)
            root.report(answer.report)
            await root.close()
        except asyncio.CancelledError:
            await root.close(Outcome.CANCELLED)
            raise
        except BaseException as error:
            await in_thread(partial(fail_run, root.sync, error))
            raise
        return RunResult(output=answer.report.result, run=root.id, session_id=session_id, report=answer.report)

    async def introduce(self, card: Card) -> None:
        """Register an agent's card, with its ceiling, in this runner's relay."""
        relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
        relay.introduce(card)

    def working(self, agent_def: AgentDefinition) -> Work:
        """Return the function that works on handoffs to an agent: its model gets the briefing and gives the report."""

        async def work(run: AsyncRun) -> None:
            require_extra()
            relay: AsyncRelay = await in_thread(lambda: relay_of(self._relay))
            prepared = await prepare(run, relay.store, recalled=self._config.recall)
            prompt = [prepared.briefing.text]
            answer = await self._answer(
                relay, run, agent_def, prompt=prompt, messages=prepared.messages, reports=True, checkpoints=True
            )
            if isinstance(answer, tuple):
                raise answer[0].error  # an attempt that is left by such an error waits, and the next one goes on
            # Missing parts of the report are never filled in: they are named as gaps.
            gaps = tuple(f"gap.{part}" for part in gaps_of(answer.report))
            run.report(answer.report, flags=gaps if answer.reported else (PLAIN, *gaps))

        return configured(work, self._made_of(agent_def))

    def _made_of(self, agent_def: AgentDefinition) -> dict[str, Any]:
        """Return the configuration of an agent: with another model, prompt or set of tools it is another agent."""
        tools = self._executor.tools_of(agent_def.tools)
        return makeup(model=agent_def.model, prompt=agent_def.system_prompt, tools=tools)

    async def _answer(
        self,
        relay: AsyncRelay,
        run: AsyncRun,
        agent_def: AgentDefinition,
        *,
        prompt: list[str],
        messages: object | None,
        reports: bool,
        checkpoints: bool,
    ) -> "ModelAnswer | tuple[HeldWork, ...]":
        """Let a model work until it answers, and return the answer; or return its held calls, if a person must decide.

        The words of a model while one of its calls is held are no result, though they may sound like one. It is told
        the ruling, and answers again.
        """
        from batonpass.agents.framework.agent_loop import ask, read_history  # noqa: PLC0415 - the extra

        run.sync._holding.stops_harm = self._config.gates == "hold"  # noqa: SLF001 - we speak for the run
        history = read_history(messages)
        tools = self._tools(run, agent_def, await run.grant())
        here = AgentAtWork(run, relay.store, tuple(tool.work_of for tool in tools.values() if tool.work_of is not None))
        told: set[str] = set()
        answer: ModelAnswer | None = None
        while True:
            held = await run.held_work()
            if any(one.approved is None for one in held):
                return tuple(one for one in held if one.approved is None)
            words = await go_on(here, [one for one in held if one.id not in told])
            told.update(one.id for one in held)
            if words and any(one.approved is None for one in await run.held_work()):
                continue  # a handoff went on, and waits for somebody again
            if answer is not None and not words:
                return answer
            # Whoever resumes continues with its own messages, which already contain the task.
            answer = await ask(
                here,
                agent_def,
                self._client.model(agent_def.model),
                tools=tools,
                config=self._config,
                prompt=([words] if words else None) if history else [*([words] if words else []), *prompt],
                history=history,
                reports=reports,
                checkpoints=checkpoints,
            )
            history = read_history(json.loads(answer.messages))
            if any(one.approved is None for one in await run.held_work()):
                await run.checkpoint(answer.messages)

    def _tools(self, run: AsyncRun, agent_def: AgentDefinition, grant: EffectiveGrant) -> dict[str, ToolDefinition]:
        tools = self._executor.tools_of(agent_def.tools)
        if run.parent is not None:
            tools |= READING
        elif is_in_session(run):
            tools |= SESSION
        if grant.is_bound:
            tools |= GRANT
        if self._config.enable_memory:
            tools |= MEMORY
        if any(tool.hands_off for tool in tools.values()):
            tools |= LEAD
        return tools
