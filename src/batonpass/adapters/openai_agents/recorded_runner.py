"""The runner that records: it stands behind `Runner.run`, `run_sync` and `run_streamed`. It needs the extra."""

import asyncio
import functools
from dataclasses import replace
from typing import Any, Self

from agents import Agent, RunConfig
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.adapters.openai_agents.paused_runs import PausedRuns
from batonpass.adapters.openai_agents.recorded_agent import CALLER, record_agent
from batonpass.adapters.openai_agents.sdk_run import RUN, AnswerHooks, ModelInputFilter, SdkRun, words_of
from batonpass.aio.threads import in_thread
from batonpass.audit.short_ids import LAST
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import as_agent


class RecordedRunner(AgentRunner):
    """Runs agents as the SDK does, and records them."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self._ledger = ledger
        self._paused = PausedRuns(ledger)

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:  # noqa: A002 - the SDK's own
        """Run agents, and record them."""
        recorded = await in_thread(lambda: self._begin(starting_agent, input))
        return await self.run_on(recorded, starting_agent, input, options)

    async def run_on(self, recorded: SdkRun, agent: Agent[Any], given: Any, options: dict[str, Any]) -> Any:
        """Run agents, and record them as this run."""
        record_agent(self._ledger, agent)
        entered, outer = RUN.set(recorded), CALLER.set(None)
        try:
            result = await super().run(agent, given, **_recorded(options))
        except BaseException as error:
            await in_thread(functools.partial(recorded.abort, error))
            raise
        finally:
            RUN.reset(entered)
            CALLER.reset(outer)
        await in_thread(lambda: self._end(agent, recorded, result))
        return result

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:  # noqa: A002 - the SDK's own
        """Run agents while their events are read, and record them."""
        recorded = self._begin(starting_agent, input)
        record_agent(self._ledger, starting_agent)
        entered, outer = RUN.set(recorded), CALLER.set(None)
        try:
            streamed = super().run_streamed(starting_agent, input, **_recorded(options))
        finally:
            RUN.reset(entered)
            CALLER.reset(outer)

        def end(task: "asyncio.Task[Any]") -> None:
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                self._end(starting_agent, recorded, streamed)
            else:
                recorded.abort(error)

        streamed.run_loop_task.add_done_callback(end)
        return streamed

    def _begin(self, agent: Agent[Any], given: object) -> SdkRun:
        """Return the run of an input: one that paused, a handoff from the agent whose tool this is, or a new one."""
        caller, words = CALLER.get(), words_of(given)
        if (paused := self._paused.take(agent.name, given, nested=caller is not None)) is not None:
            return paused
        if caller is not None:
            return SdkRun(caller.offer(as_agent(agent.name), words))
        return SdkRun(begin_work(self._ledger, agent.name, words))

    def _end(self, agent: Agent[Any], recorded: SdkRun, result: Any) -> None:
        """Close the runs, or leave them open if the SDK waits for approvals of its own."""
        if result.interruptions:
            self._paused.keep(agent.name, recorded, result.interruptions)
        else:
            recorded.end(result.final_output)


def _recorded(options: dict[str, Any]) -> dict[str, Any]:
    config = options.get("run_config") or RunConfig()
    if isinstance(config, dict):
        config = RunConfig(**config)
    given = config.call_model_input_filter
    if not isinstance(given, ModelInputFilter):  # a nested run inherits the options of the outer one, ours included
        config = replace(config, call_model_input_filter=ModelInputFilter(given, config.model))
    return {**options, "hooks": AnswerHooks(options.get("hooks")), "run_config": config}


class SdkRecording:
    """The recording of a process. Close it, or leave its context, to stop; the record stays."""

    def __init__(self, ledger: FrameworkLedger) -> None:
        self._ledger = ledger
        self._before = get_default_agent_runner()
        self._runner = RecordedRunner(ledger)
        set_default_agent_runner(self._runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the SDK run agents by itself again."""
        if get_default_agent_runner() is self._runner:
            set_default_agent_runner(self._before)

    async def resume(self, agent: Agent[Any], which: str = LAST, **options: Any) -> Any:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        `agent` is any agent from which the one that goes on can be reached. Only that one runs, from its last messages
        on, and its finished work is not repeated. Raises `NotFoundError` if there is no such agent.
        """
        run = await in_thread(lambda: reopen(self._ledger, which))
        kept = run.messages()
        name, items = (kept["agent"], kept["items"]) if isinstance(kept, dict) else (str(run.agent), run.task)
        target = _find(agent, name)
        work = await in_thread(lambda: resume_work(self._ledger, run))
        return await self._runner.run_on(SdkRun(work), target, items, options)


def _find(start: Agent[Any], name: str) -> Agent[Any]:
    """Return the agent of a name among those that can be reached from another: by transfers and as tools."""
    seen: dict[int, Agent[Any]] = {}
    queue = [start]
    while queue:
        agent = queue.pop()
        if id(agent) in seen:
            continue
        seen[id(agent)] = agent
        if agent.name == name or as_agent(agent.name) == name:
            return agent
        given = (one if isinstance(one, Agent) else one._agent_ref and one._agent_ref() for one in agent.handoffs)  # noqa: SLF001 - a canary
        used = (getattr(tool, "_agent_instance", None) for tool in agent.tools)
        queue += [one for one in (*given, *used) if isinstance(one, Agent)]
    raise NotFoundError("agent", name)
