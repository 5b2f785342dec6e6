"""The recording of a process: agents of CrewAI at work are runs, from the hooks of CrewAI and around its methods.

Hooks see crews begin and end, and models and tools before and after they are asked; but they do not see an agent end,
and an error inside of a delegation becomes a text before any hook sees it. So the methods that run agents and tools are
also wrapped, on their classes; closing the recording restores them. It needs the extra.
"""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from crewai import Agent, Crew, Task
from crewai.hooks import HookAborted, InterceptionPoint, get_hooks, register_hook, unregister_hook
from crewai.tools.base_tool import BaseTool, Tool
from crewai.tools.structured_tool import CrewStructuredTool

from batonpass.adapters.crewai.crew_run import CREW, CrewRun
from batonpass.adapters.crewai.task_work import WORK, TaskWork
from batonpass.adapters.crewai.tool_use import ASKED, MAKING, AskedUse, asked_for
from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.adapters.frameworks.framework_recorder import begin_work, reopen, resume_work
from batonpass.audit.short_ids import LAST
from batonpass.errors import BatonpassError, GuardFailedError, NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.model.base.ids import as_agent
from batonpass.model.bodies.body import Relation

NO_WORDS: Final = "(no words of a person)"
NO_OUTPUT: Final = "The result of the task."


class CrewRecording:
    """The recording of a process. Close it, or leave its context, to stop; the record stays."""

    _current: ClassVar["CrewRecording | None"] = None
    _lock: ClassVar = threading.Lock()

    def __init__(self, ledger: FrameworkLedger) -> None:
        self._ledger = ledger
        self._hooks: Mapping[InterceptionPoint, Callable[[Any], Any]] = {
            InterceptionPoint.EXECUTION_START: self._crew_begins,
            InterceptionPoint.EXECUTION_END: self._crew_ends,
            InterceptionPoint.PRE_MODEL_CALL: self._before_model,
            InterceptionPoint.PRE_TOOL_CALL: self._before_tool,
            InterceptionPoint.POST_TOOL_CALL: self._after_tool,
        }
        self._replaced: list[tuple[type, str, Callable[..., Any]]] = []
        with CrewRecording._lock:
            if CrewRecording._current is not None:
                CrewRecording._current.give_back()
            CrewRecording._current = self
            self._ensure_hooks()
            self._replace_methods()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let CrewAI work by itself again."""
        with CrewRecording._lock:
            if CrewRecording._current is self:
                CrewRecording._current = None
                self.give_back()

    def give_back(self) -> None:
        """Give CrewAI its methods back, and take our hooks away."""
        for point, hook in self._hooks.items():
            unregister_hook(point, hook)
        for owner, name, method in reversed(self._replaced):
            setattr(owner, name, method)
        self._replaced = []

    def resume(self, crew: Crew | Sequence[Agent], which: str = LAST) -> Any:
        """Go on with a handoff that failed or waited for somebody, or with a root run whose process is gone.

        The crew has the agent that goes on, and so may a list of agents. Only that one works, from its last messages
        on, and its finished work is not repeated. Returns the result of its task. Raises `NotFoundError` if there is no
        such agent.
        """
        run = reopen(self._ledger, which)
        agents = crew.agents if isinstance(crew, Crew) else crew
        agent = next((one for one in agents if as_agent(_name_of(one)) == run.agent), None)
        if agent is None:
            raise NotFoundError("agent", run.agent)
        work = resume_work(self._ledger, run)
        return self._go_on(work, run, agent, crew)

    def _go_on(self, work: AgentWork, run: LiveRun, agent: Any, crew: Crew | Sequence[Any]) -> Any:
        found = run.messages()
        kept: dict[str, Any] = found if isinstance(found, dict) else {}
        tasks = crew.tasks if isinstance(crew, Crew) else ()
        known = next((one for one in tasks if one.description == run.task), None)
        task = known or Task(
            description=run.task, expected_output=kept.get("expected_output") or NO_OUTPUT, agent=agent
        )
        tools = list(task.tools or agent.tools or ())
        if kept.get("coworkers"):
            others = crew.agents if isinstance(crew, Crew) else crew
            tools += agent.get_delegation_tools([one for one in others if one is not agent])
        working = TaskWork(work, agent, task, kept.get("messages"))
        with self._working(working, kept_in=None) as ending:
            ending.result = agent.execute_task(task, None, tools)
        return ending.result

    # The methods of CrewAI by which agents and tools run.

    def _replace_methods(self) -> None:
        self._replace(Agent, "execute_task", self._execute_task)
        self._replace(Agent, "aexecute_task", self._aexecute_task)
        self._replace(Agent, "kickoff", self._kickoff)
        self._replace(Agent, "kickoff_async", self._kickoff_async)
        self._replace(CrewStructuredTool, "invoke", self._invoke)
        self._replace(CrewStructuredTool, "ainvoke", self._ainvoke)
        self._replace(Tool, "run", self._run_tool)
        self._replace(BaseTool, "run", self._run_tool)

    def _replace(self, owner: type, name: str, made: Callable[..., Any]) -> None:
        inner = owner.__dict__[name]

        @functools.wraps(inner)
        def method(instance: Any, *args: Any, **kwargs: Any) -> Any:
            return made(functools.partial(inner, instance), instance, *args, **kwargs)

        self._replaced.append((owner, name, inner))
        setattr(owner, name, method)

    def _execute_task(
        self, inner: Callable[..., Any], agent: Any, task: Any, context: str | None = None, *rest: Any, **named: Any
    ) -> Any:
        if _is_at(agent, task):  # the framework tries again by itself
            return inner(task, context, *rest, **named)
        with self._beginning(agent, task, context) as ending:
            if not ending.known:
                ending.result = inner(task, context, *rest, **named)
        return ending.result

    async def _aexecute_task(
        self, inner: Callable[..., Any], agent: Any, task: Any, context: str | None = None, *rest: Any, **named: Any
    ) -> Any:
        if _is_at(agent, task):
            return await inner(task, context, *rest, **named)
        with self._beginning(agent, task, context) as ending:
            if not ending.known:
                ending.result = await inner(task, context, *rest, **named)
        return ending.result

    def _kickoff(self, inner: Callable[..., Any], agent: Any, messages: Any, *rest: Any, **named: Any) -> Any:
        if _in_a_loop() or named.get("from_checkpoint") is not None:  # it then calls another of these methods
            return inner(messages, *rest, **named)
        with self._beginning(agent, None, messages) as ending:
            ending.result = inner(messages, *rest, **named)
        return ending.result

    async def _kickoff_async(
        self, inner: Callable[..., Any], agent: Any, messages: Any, *rest: Any, **named: Any
    ) -> Any:
        if named.get("from_checkpoint") is not None:
            return await inner(messages, *rest, **named)
        with self._beginning(agent, None, messages) as ending:
            ending.result = await inner(messages, *rest, **named)
        return ending.result

    def _invoke(self, inner: Callable[..., Any], tool: Any, input: Any, *rest: Any, **named: Any) -> Any:  # noqa: A002 - the framework's own
        if (use := asked_for(tool)) is None:
            return inner(input, *rest, **named)
        with use.making(input) as made:
            if not made.refused:
                made.value = inner(input, *rest, **named)
        return made.value

    async def _ainvoke(self, inner: Callable[..., Any], tool: Any, input: Any, *rest: Any, **named: Any) -> Any:  # noqa: A002 - the framework's own
        if (use := asked_for(tool)) is None:
            return await inner(input, *rest, **named)
        with use.making(input) as made:
            if not made.refused:
                made.value = await inner(input, *rest, **named)
        return made.value

    def _run_tool(self, inner: Callable[..., Any], tool: Any, *args: Any, **named: Any) -> Any:
        if (use := asked_for(tool)) is None:
            return inner(*args, **named)
        with use.making(use.given if args else named) as made:
            if not made.refused:
                made.value = inner(*args, **named)
        return made.value

    # From the beginning of an agent's work to its end.

    @contextlib.contextmanager
    def _beginning(self, agent: Any, task: Any, given: object) -> Iterator["TaskEnd"]:
        """Let an agent work as a recorded run. Without a result at the end, the run has failed."""
        use = MAKING.get()
        crew = CREW.get() if task is not None and use is None else None
        enforced = None if use is None else use.work.enforced
        try:
            work = self._ledger.attempt(lambda: self._begin(agent, task, given), enforced=enforced)
        except BatonpassError as error:
            if use is not None:
                use.refused = error
            raise
        if work is None:  # it works unrecorded
            yield TaskEnd()
            return
        # A task that an earlier process delivered is not done again. A kickoff has another kind of result.
        known = work.finished() if use is not None and use.work.resumed and task is not None else None
        if known is not None:
            yield TaskEnd(result=known.value, known=True)
            return
        with self._working(TaskWork(work, agent, task), kept_in=crew) as ending:
            yield ending

    def _begin(self, agent: Any, task: Any, given: object) -> AgentWork:
        name, crew, use = _name_of(agent), CREW.get(), MAKING.get()
        words = _words_of(given) if task is None else task.description
        context = given if task is not None and isinstance(given, str) and given else None
        if use is not None:
            return use.work.offer(as_agent(name), words, context=context)
        if crew is None or task is None:
            return begin_work(self._ledger, name, words)

        def begin() -> AgentWork:
            sender = crew.sender_of(task, given)
            if sender is None:
                return begin_work(self._ledger, name, words)
            relation = Relation.LEAD_TO_WORKER if sender is crew.caller else Relation.PEER_TO_PEER
            return sender.offer(as_agent(name), words, context=context, relation=relation)

        return crew.work_of(task, begin)

    @contextlib.contextmanager
    def _working(self, working: TaskWork, kept_in: CrewRun | None) -> Iterator["TaskEnd"]:
        self._ensure_hooks(working.agent)
        use, ending = MAKING.get(), TaskEnd()
        tokens = WORK.set(working), ASKED.set(None), MAKING.set(None)
        try:
            yield ending
        except BaseException as error:
            why = _cause_of(error)
            self._ledger.attempt(lambda: working.work.abort(why), enforced=working.work.enforced)
            if use is not None and isinstance(why, BatonpassError):
                use.refused = why
            if why is not error:
                raise why from error
            raise
        finally:
            WORK.reset(tokens[0])
            ASKED.reset(tokens[1])
            MAKING.reset(tokens[2])
        self._ledger.attempt(lambda: _finish(working, ending, kept_in), enforced=working.work.enforced)

    def _ensure_hooks(self, agent: Any = None) -> None:
        """Have our hooks where CrewAI looks: a program may clear them, and an executor copies those of models."""
        for point, hook in self._hooks.items():
            if hook not in get_hooks(point):
                register_hook(point, hook)
        copied = getattr(getattr(agent, "agent_executor", None), "before_llm_call_hooks", None)
        if isinstance(copied, list) and self._before_model not in copied:
            copied.append(self._before_model)

    # The hooks. CrewAI drops any error of a hook but its own, and goes on.

    def _crew_begins(self, context: Any) -> None:
        if context.crew is not None:
            others = [_name_of(one) for one in context.crew.agents if not isinstance(one, Agent)]
            self._ledger.leave_uncovered(others, "is an agent of another framework")
            use = MAKING.get()
            CREW.set(CrewRun(None if use is None else use.work, CREW.get()))

    def _crew_ends(self, context: Any) -> None:
        crew = CREW.get()
        if context.crew is not None and crew is not None:
            CREW.set(crew.outer)
            self._ledger.attempt(lambda: crew.end(context.error), enforced=False)

    def _before_model(self, context: Any) -> None:
        working = WORK.get()
        if working is not None and CrewRecording._current is self:
            self._closed(working.work, "the model", lambda: working.prepare(context))

    def _before_tool(self, context: Any) -> None:
        working = WORK.get()
        if working is None:
            return

        def ask() -> bool:
            use = AskedUse(self._ledger, working.work, context)
            ASKED.set(use)
            return use.ask()

        if self._closed(working.work, context.tool_name, ask) is False:
            raise HookAborted("Batonpass refused it", source="batonpass")

    def _after_tool(self, context: Any) -> str | None:
        use = ASKED.get()
        if use is None or use.given is not context.tool_input:
            return None
        ASKED.set(use.outer)
        try:
            return use.end(context)
        except Exception as error:  # noqa: BLE001 - it must not be dropped
            if use.work.enforced:
                return sentence_for(_as_fault(context.tool_name, error))
            self._ledger.complain(error)
            return None

    def _closed(self, work: AgentWork, what: str, act: Callable[[], Any]) -> Any:
        """Act in a hook that fails closed: if we fail, the request of an enforced agent is not carried out."""
        try:
            return act()
        except BatonpassError as error:
            raise HookAborted(str(error), source=error) from error
        except Exception as error:
            if work.enforced:
                raise HookAborted(str(error), source=_as_fault(what, error)) from error
            self._ledger.complain(error)
            return None


@dataclass
class TaskEnd:
    """How the work of an agent ended; known if it was done before."""

    result: Any = None
    known: bool = False


def _finish(working: TaskWork, ending: TaskEnd, kept_in: CrewRun | None) -> None:
    """End the work of an agent with its result, or keep it open: a task of a crew may be handed on."""
    result = _words_of_result(ending.result)
    working.open()  # it did work, even if no hook saw its model
    if kept_in is not None:
        kept_in.note_result(working.task, result)
    else:
        working.work.close(result)


def _cause_of(error: BaseException) -> BaseException:
    """Return the error for which our hook stopped a model, else the error itself."""
    source = error.source if isinstance(error, HookAborted) else None
    return source if isinstance(source, BatonpassError) else error


def _as_fault(what: str, error: Exception) -> BatonpassError:
    return error if isinstance(error, BatonpassError) else GuardFailedError(what, f"{type(error).__name__}: {error}")


def _is_at(agent: object, task: object) -> bool:
    """Return whether an agent is at this task already: the framework tries again by itself."""
    working = WORK.get()
    return working is not None and working.agent is agent and working.task is task


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _name_of(agent: Any) -> str:
    return str(getattr(agent, "role", None) or "agent").strip()


def _words_of(messages: object) -> str:
    """Return the last words of the user in the input of a kickoff."""
    if isinstance(messages, str):
        return messages
    given = messages if isinstance(messages, Sequence) else ()
    said = [one.get("content") for one in given if isinstance(one, Mapping) and one.get("role") == "user"]
    return said[-1] if said and isinstance(said[-1], str) else NO_WORDS


def _words_of_result(result: object) -> str:
    raw = getattr(result, "raw", result)
    dump = getattr(raw, "model_dump_json", None)
    return str(dump()) if callable(dump) else str(raw)
