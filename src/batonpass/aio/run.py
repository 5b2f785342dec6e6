"""`AsyncRun`, `AsyncHandoff` and `AsyncCall`: runs, handoffs and held calls for asynchronous programs."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from batonpass.aio.faces import Face, at_once, opens, twin
from batonpass.aio.threads import in_own_thread, in_thread, until_done
from batonpass.errors import HandoffError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.calls.shell_call import NO_VARIABLES, plan_command
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.live.current_run import RunScope
from batonpass.handoff.live.faces import LiveHandoff, LiveRun, current_run, pauses
from batonpass.handoff.live.held_call import LiveCall
from batonpass.handoff.programs.runners import Runner, config_of, configured, fail_run, take_report
from batonpass.handoff.shell.commands import KEPT, Finished
from batonpass.handoff.tools.call_context import entered
from batonpass.handoff.tools.declaration import declare, declared_of, is_async
from batonpass.handoff.tools.returned_value import drained, drained_async, is_lazy
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.checks import as_member
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import AgentId, PrincipalId, RunId
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.label import Label, Source
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item, Report
from batonpass.model.baton.session import SessionState
from batonpass.model.grants.charge import Unit
from batonpass.model.ledger.lease import Lease

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def end_cancelled(run: LiveRun) -> None:
    """End a run whose caller was cancelled while it was being recorded. Nobody holds it, and it would stay open."""
    fail_run(run, asyncio.CancelledError())


class AsyncRunner:
    """A coroutine function as a runner. It gets an `AsyncRun`, also from a synchronous worker."""

    def __init__(self, function: Runner) -> None:
        self.function = function
        configured(self, config_of(function))

    def __call__(self, run: LiveRun) -> Any:  # noqa: ANN401 - whatever a runner returns
        """Start to work on a run."""
        return self.function(AsyncRun(run))


class AsyncCall(Face[LiveCall]):
    """A held call of a root run, to be approved or denied."""

    def __init__(self, sync: LiveCall) -> None:
        super().__init__(sync)
        self.id = sync.id

    material = twin(LiveCall.material)
    approve = twin(LiveCall.approve)
    deny = twin(LiveCall.deny)


class AsyncHandoff(Face[LiveHandoff]):
    """One task that was handed to an agent. Use it as a context to work on the task here."""

    _shown: RunScope | None = None  # set while it is entered

    def __init__(self, sync: LiveHandoff) -> None:
        super().__init__(sync)
        self.id = sync.id

    state = twin(LiveHandoff.state)
    info = twin(LiveHandoff.info)
    baton = twin(LiveHandoff.baton)
    result = twin(LiveHandoff.result)
    accept = opens(LiveHandoff.accept, lambda run: AsyncRun(run), end_cancelled)  # noqa: PLW0108 - it is defined below
    ask = twin(LiveHandoff.ask)
    answer = twin(LiveHandoff.answer)
    problems = twin(LiveHandoff.problems)
    waive = twin(LiveHandoff.waive)
    decline = twin(LiveHandoff.decline)
    material = twin(LiveHandoff.material)
    approve = twin(LiveHandoff.approve)
    deny = twin(LiveHandoff.deny)
    endorse = twin(LiveHandoff.endorse)
    refute = twin(LiveHandoff.refute)
    accept_unverified = twin(LiveHandoff.accept_unverified)
    retry = twin(LiveHandoff.retry)
    replace = twin(LiveHandoff.replace)
    settle = twin(LiveHandoff.settle)
    cancel = twin(LiveHandoff.cancel)

    async def __aenter__(self) -> "AsyncRun":
        child = await in_thread(self.sync.__enter__, undo=end_cancelled)
        self._shown = child.as_current()
        self._shown.__enter__()  # `sync.__enter__` made it current only in its own thread
        return AsyncRun(child)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.__exit__()
        await in_thread(functools.partial(self.sync.__exit__, kind, error, trace))

    async def run(self, runner: Runner | None = None, *, lease: Lease | None = None) -> Result:
        """Accept the handoff, let a runner work on it, and close it. Return the result, whatever the runner does.

        A coroutine function works on an `AsyncRun`. Any other runner works on a `LiveRun` in a thread of its own, where
        no cancellation reaches it.
        """
        chosen = await in_thread(lambda: self.sync._choose(runner))  # noqa: SLF001 - a face of the same object
        function = chosen.function if isinstance(chosen, AsyncRunner) else chosen
        if not is_async(function):
            return await asyncio.shield(in_own_thread(lambda: self.sync.run(chosen, lease=lease)))
        while True:
            result, pause = await self._run_once(function, lease)
            if pause is None or lease is not None:
                return result
            await asyncio.sleep(pause.total_seconds())

    async def _run_once(self, function: Callable[[Any], Any], lease: Lease | None) -> tuple[Result, timedelta | None]:
        """Make one attempt. Return the result, and how long the next one waits; None if there is none."""
        try:
            child = await self.accept(lease=lease, config=config_of(function))
        except HandoffError:
            return await self.result(), None
        if child.sync._holding.replaying:  # noqa: SLF001 - as in `LiveHandoff.run`: a finished handoff is not worked on again
            return await in_thread(self.sync._learned), None  # noqa: SLF001 - as above
        try:
            with child.as_current():
                returned = await function(child)
            take_report(child.sync, returned)
            await child.close()
        except BaseException as error:
            await in_thread(functools.partial(fail_run, child.sync, error))
            if not isinstance(error, Exception):
                raise
        pause = child.sync._holding.tried_again_after  # noqa: SLF001 - as above
        return await in_thread(self.sync._learned), pause  # noqa: SLF001 - as above

    async def wait(
        self,
        timeout: timedelta | str | None = None,  # noqa: ASYNC109 - the synchronous face has it
        *,
        until: WaitUntil | str = WaitUntil.SETTLED,
    ) -> Result:
        """Return the result. Run the handoff here if this process should, else wait until it ends or needs somebody.

        With `until="decided"` it also waits while somebody has to approve or answer, and goes on after that. Raises
        `TimeoutError`. Nothing is lost by that: wait again.
        """
        until = as_member("until", until, WaitUntil)
        # Read before anything runs: a word that is no duration would be refused after the work was done.
        at_most = None if timeout is None else as_duration("timeout", timeout)
        runner = await in_thread(self.sync._find_own)  # noqa: SLF001 - a face of the same object
        if runner is not None and (result := await self.run(runner)).is_over(until):
            return result
        if timeout is None and runner is None:
            settled = await in_thread(functools.partial(self.sync._find_settled, until))  # noqa: SLF001 - as above
            if settled is not None:
                return settled
            await in_thread(functools.partial(self.sync._suspend, until))  # noqa: SLF001 - as above
        for pause in pauses(at_most):
            await asyncio.sleep(pause)
            if runner is not None and await self.state() is State.OFFERED:
                await self.run(runner)  # somebody has approved it, or answered
            settled = await in_thread(functools.partial(self.sync._find_settled, until))  # noqa: SLF001 - as above
            if settled is not None:
                return settled
        raise TimeoutError(f"{self.id} is {await self.state()} after {timeout}")

    async def verify(
        self,
        *,
        by: str | None = None,
        command: Sequence[str] | None = None,
        check: Callable[[], object] | None = None,
        verdict: str | None = None,
        cwd: str | PathLike[str] | None = None,
    ) -> bool:
        """Check the delivered result by exactly one kind of evidence. Return whether it holds."""
        loop = asyncio.get_running_loop()
        decide = check
        if check is not None and is_async(check):
            question: Callable[[], Coroutine[Any, Any, object]] = check  # type: ignore[assignment]
            decide = lambda: asyncio.run_coroutine_threadsafe(question(), loop).result()  # noqa: E731 - one line says it
        judge = functools.partial(self.sync.verify, by=by, command=command, check=decide, verdict=verdict, cwd=cwd)
        return await asyncio.shield(in_own_thread(judge))


class AsyncRun(Face[LiveRun]):
    """One agent working once on one task, in this process. Use it as a context: leaving it closes the run.

    Methods are awaited, properties are not. `report`, `note_message`, `is_limited` and `as_current` touch no ledger and
    are called without `await`.
    """

    _shown: RunScope | None = None  # set while it is entered

    @property
    def id(self) -> RunId:
        """Return the id of the run."""
        return self.sync.id

    @property
    def parent(self) -> RunId | None:
        """Return the run that handed this task off; None for a root run."""
        return self.sync.parent

    @property
    def root(self) -> RunId:
        """Return the root run of its tree."""
        return self.sync.root

    @property
    def agent(self) -> AgentId:
        """Return the agent that works."""
        return self.sync.agent

    @property
    def principal(self) -> PrincipalId:
        """Return the principal for whom the agent works."""
        return self.sync.principal

    @property
    def attempt(self) -> int:
        """Return the attempt number, from 1."""
        return self.sync.attempt

    @property
    def baton(self) -> Baton:
        """Return the baton. Raises `InvalidValueError` for a root run, which has only its intent."""
        return self.sync.baton

    @property
    def task(self) -> str:
        """Return the exact task. It is empty for a root run: see its intent."""
        return self.sync.task

    @property
    def earlier(self) -> Resumption:
        """Return the finished calls, the calls in doubt and the handoffs of earlier attempts."""
        return self.sync.earlier

    def is_limited(self, unit: Unit | str) -> bool:
        """Return whether a limit of this run counts a unit, such as `tokens` or `spend`."""
        return self.sync.is_limited(unit)

    @property
    def is_replayed(self) -> bool:
        """Return whether it was completed before, and only replays its record: nothing is done again."""
        return self.sync.is_replayed

    @property
    def session(self) -> SessionState:
        """Return the state inherited from earlier root runs: kept, to decide again, left open, in flight."""
        return self.sync.session

    @property
    def notes(self) -> tuple[Item, ...]:
        """Return the items that travel with every handoff of this run."""
        return self.sync.notes

    @property
    def label(self) -> Label:
        """Return the label of everything this run knows: how far it is trusted, and who may read it."""
        return self.sync.label

    @property
    def taint(self) -> tuple[Source, ...]:
        """Return the sources that reached this run and that nobody endorsed."""
        return self.sync.taint

    @property
    def reported(self) -> Report | None:
        """Return the report so far; None if there is none."""
        return self.sync.reported

    record = twin(LiveRun.record)
    add_intent = twin(LiveRun.add_intent)
    relax = twin(LiveRun.relax)
    attach = twin(LiveRun.attach)
    read = twin(LiveRun.read)
    checkpoint = twin(LiveRun.checkpoint)
    messages = twin(LiveRun.messages)
    deny = twin(LiveRun.deny)
    note_untrusted = twin(LiveRun.note_untrusted)
    endorse = twin(LiveRun.endorse)
    remember = twin(LiveRun.remember)
    traceparent = twin(LiveRun.traceparent)
    grant = twin(LiveRun.grant)
    prove = twin(LiveRun.prove)
    spend = twin(LiveRun.spend)
    require_room = twin(LiveRun.require_room)
    watch_files = twin(LiveRun.watch_files)
    unexplained = twin(LiveRun.unexplained)
    revisions = twin(LiveRun.revisions)
    news = twin(LiveRun.news)
    acknowledge = twin(LiveRun.acknowledge)
    held_work = twin(LiveRun.held_work)
    save_session = twin(LiveRun.save_session)
    settle = twin(LiveRun.settle)
    hand_off = opens(LiveRun.hand_off, AsyncHandoff)
    refuse_handoff = twin(LiveRun.refuse_handoff)
    handoff = opens(LiveRun.handoff, AsyncHandoff)
    close = twin(LiveRun.close)
    fail = twin(LiveRun.fail)

    report = at_once(LiveRun.report)

    def note_message(self, message: object, *, number: int | None = None) -> None:
        """Remember the last message of this run's model. Handoffs from now on point to it."""
        self.sync.note_message(message, number=number)

    @overload
    async def call(
        self,
        function: Callable[Arguments, Awaitable[Returned]],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Returned: ...

    @overload
    async def call(
        self,
        function: Callable[Arguments, Returned],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Returned: ...

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a tool. The request is recorded before, the outcome after. A finished call is not made again.

        A coroutine function is awaited; if it is cancelled, the call is in doubt. Any other function runs in a thread
        of its own, which nothing can interrupt: a cancellation waits for the outcome, so that the receipt is true. If
        the tool returns an awaitable, it is awaited as part of the call. A generator of either kind comes back as a
        list. Raises `CallInDoubtError` if nobody knows whether an earlier attempt made this call.
        """
        run = self.sync
        planned: ToolCall[Any] = ToolCall(declared_of(function), function, args, kwargs)

        def not_made(begun: Begun | Replayed) -> None:
            if isinstance(begun, Begun):
                run._fail(begun, planned, asyncio.CancelledError(), made=False)  # noqa: SLF001 - a face of the same object

        begun = await in_thread(lambda: run._begin(planned), undo=not_made)  # noqa: SLF001 - as above
        if isinstance(begun, Replayed):
            return begun.value
        try:
            with entered(begun.context(self.id)):
                result, cancelled = await _made(planned)
        except BaseException as error:
            await in_thread(functools.partial(run._fail, begun, planned, error))  # noqa: SLF001 - as above
            raise
        await in_thread(lambda: run._finish(begun, planned, result))  # noqa: SLF001 - as above
        if cancelled:
            raise asyncio.CancelledError
        return result

    async def shell(
        self,
        command: Sequence[str],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] = NO_VARIABLES,
        inherit: Sequence[str] = (),
        stdin: str | None = None,
        timeout: timedelta | str | None = None,  # noqa: ASYNC109 - the synchronous face has it
        credential: tuple[str, str] | None = None,
        reads: bool = False,
        idempotent: bool = False,
        external: bool = False,
        kept: int = KEPT,
    ) -> Finished:
        """Run a command as a call, like `LiveRun.shell`.

        If it is cancelled, the command is killed and the call is in doubt.
        """
        planned = plan_command(
            self.sync._desk,  # noqa: SLF001 - a face of the same object
            command,
            cwd=cwd,
            env=env,
            inherit=inherit,
            stdin=stdin,
            timeout=timeout,
            credential=credential,
            reads=reads,
            idempotent=idempotent,
            external=external,
            kept=kept,
        )

        @functools.wraps(planned.command.__call__)
        async def shell(**given: Any) -> Finished:  # noqa: ANN401 - what a command is called with
            running = in_own_thread(lambda: planned.command(**given))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                planned.command.kill()
                await until_done(running)
                raise

        return await self.call(declare(shell, planned.declared), **planned.given)

    def as_current(self) -> RunScope:
        """Return a context in which `current_run` returns this run. Leaving it does not close the run."""
        return self.sync.as_current()

    async def __aenter__(self) -> Self:
        self._shown = self.as_current()
        self._shown.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.__exit__()
        await in_thread(functools.partial(self.sync.__exit__, kind, error, trace))


async def _made(planned: ToolCall[Any]) -> tuple[Any, bool]:
    """Make a call. Return its result once all of it has run, and whether somebody tried to cancel it."""
    if is_async(planned.function):
        return await _ended(await planned.make(), planned.declared.name)
    made = in_own_thread(lambda: _drained(planned.make(), planned.declared.name))
    cancelled = await until_done(made)
    result, cancelled_later = await _ended(await made, planned.declared.name)
    return result, cancelled or cancelled_later


async def _ended(value: Any, name: str) -> tuple[Any, bool]:  # noqa: ANN401 - whatever a tool returns
    while inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return await drained_async(value, name), False
    if not is_lazy(value):
        return value, False
    draining = in_own_thread(lambda: drained(value, name))  # synchronous code that may take long
    cancelled = await until_done(draining)
    return await draining, cancelled


def _drained(value: Any, name: str) -> Any:  # noqa: ANN401 - as above
    """Drain a lazy result in the thread in which the tool ran: objects that it uses may belong to that thread."""
    return drained(value, name) if is_lazy(value) else value


def current_async_run() -> AsyncRun:
    """Return the `AsyncRun` that this code works for. Raises `InvalidValueError` as `current_run` does."""
    return AsyncRun(current_run())
